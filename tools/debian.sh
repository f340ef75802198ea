#!/usr/bin/env bash
# PostgreSQL as Debian has it: each version in a suite of its own. Source it after env.sh, then:
#   suites                    the versions that are checked, oldest first, each with its suite. One that is not released yet is
#                             in experimental, and has a further suite for the libraries that it needs
#   newest_released           the newest version that is released
#   archive_of_debian         the address that the system's package lists came from
#   unpack_source MAJOR WORK  makes the folder WORK anew, with the source of that version in WORK/build; fails if it can't be had
# What is fetched stays apart from the system's lists.

# shellcheck disable=SC2034
suites='15 bookworm
17 trixie
18 forky
19 experimental forky'
newest_released=$(sed -n '/ experimental /!s/ .*//p' <<<"$suites" | tail -n 1)

archive_of_debian() {
    apt-get indextargets --format "\$(REPO_URI)" 'Identifier: Packages' 'Label: Debian' | sed -n 1p
}

unpack_source() {
    local major=$1 work=$2 suite
    suite=$(sed -n "s/^$major \([a-z]*\).*/\1/p" <<<"$suites")
    [ -n "$suite" ] || { echo "no suite of Debian has PostgreSQL $major"; return 1; }
    rm -rf "$work"
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/build"
    echo "deb-src $(archive_of_debian) $suite main" >"$work/sources.list"
    local apt_options=(-q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work" -o APT::Sandbox::User=root)
    apt-get "${apt_options[@]}" update || return
    (cd "$work" && apt-get "${apt_options[@]}" source --download-only "postgresql-$major") || return
    tar -xf "$work"/*.orig.tar.* -C "$work/build" --strip-components 1
}
