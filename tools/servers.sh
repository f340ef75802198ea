#!/usr/bin/env bash
# servers.sh [oldest]: brings PostgreSQL of each version that is checked, or of the oldest, into the cache as pg/MAJOR, with its
# headers, its contrib, pg_regress, pg_cron, pgfincore and hypopg. What is there already stays; to renew it, delete it first.
#
# They are Debian's binary packages, each of the suite that has that version, with the libraries they were linked with, unpacked
# there: nothing is installed into the system, and no other suite gets into its lists. apt looks at the suite's signature, and at
# the hashes of its lists and of each package. What was downloaded before the network failed is not downloaded again.
#
# A version that can't be had today is named and left out. Without the oldest or the newest released one this fails.

. "$(dirname "$0")/env.sh"
. tools/debian.sh

oldest=${suites%% *}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# in_suite COMMAND…: runs apt so that it knows nothing but the suites in $work, and takes nothing for installed.
in_suite() {
    "$@" -q -o Dir::State="$work" -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
        -o Dir::Cache="$work" -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences="$work/preferences" -o Dir::Etc::PreferencesParts=/dev/null -o APT::Sandbox::User="$(id -un)" \
        -o APT::Get::AllowUnauthenticated=false
}

# packages_of MAJOR: prints the server's packages, and the libraries that they need. JIT compilation is left out, for its size.
packages_of() {
    local major=$1 extension wanted=("postgresql-$1" "postgresql-client-$1")
    for extension in cron pgfincore hypopg; do
        in_suite apt-cache show "postgresql-$major-$extension" >/dev/null 2>&1 && wanted+=("postgresql-$major-$extension")
    done
    in_suite apt-get install --simulate --no-install-recommends "${wanted[@]}" >"$work/log" 2>&1 || return
    printf '%s\n' "${wanted[@]}" "postgresql-server-dev-$major" libpq-dev
    sed -n 's/^Inst \(lib[^ ]*\|zlib1g\) .*/\1/p' "$work/log" | grep -vE '^lib(llvm|z3|perl|.*-perl$)'
}

# unpack FOLDER: unpacks what was downloaded, so that it runs from there. A program's loader and libraries come from there, too:
# the libraries were made for the libc of that loader.
unpack() {
    local to=$1 package loader folders program programs
    rm -rf "$to" "$to.new"
    mkdir "$to.new" && cd "$to.new" || return
    for package in "$work"/packages/*.deb; do
        dpkg-deb -x "$package" . || return
    done
    ln -s "usr/lib/postgresql/$major/bin" bin
    rm -f "usr/lib/postgresql/$major/lib"/llvmjit*
    loader=$(patchelf --print-interpreter bin/postgres) || return
    loader=$to/$(find . -name "${loader##*/}" -printf '%P\n' -quit)
    folders=$(find . -name 'lib*.so.*' -path '*/lib/*-linux-*' -printf "$to/%P\n" | xargs -n 1 dirname | sort -u | paste -sd :)
    mapfile -t programs < <(
        find usr/lib/postgresql -type f -perm -u+x | while IFS= read -r program; do
            ! patchelf --print-interpreter "$program" >/dev/null 2>&1 || echo "$program"
        done
    )
    for program in "${programs[@]}"; do
        patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$folders" "$program" || return
    done
    cd / && mv "$to.new" "$to" || return
    for program in "${programs[@]}"; do
        if "$loader" --list "$to/$program" | grep '=>' | grep -vF "=> $to/"; then
            echo "$program links with what is not its own"
            rm -rf "$to"
            return 1
        fi
    done
    "$to/bin/postgres" --version
}

# fetch MAJOR SUITE…: fetches it from the first suite, and from the others what only they have.
fetch() {
    local major=$1 work=$cache/download/$1 names suite
    shift
    mkdir -p "$work"/{lists,archives}/partial "$work/packages"
    : >"$work/status"
    # apt takes nothing from experimental unless it is pinned.
    printf '%s\n' "Package: src:postgresql-$major" "Pin: release a=$1" 'Pin-Priority: 990' >"$work/preferences"
    for suite; do
        echo "deb [signed-by=$keyring target=Packages] $archive $suite main"
    done >"$work/sources.list"
    in_suite apt-get update --error-on=any >"$work/log" 2>&1 || return
    mapfile -t names < <(packages_of "$major")
    [ ${#names[@]} -gt 0 ] || return
    (cd "$work/packages" && in_suite apt-get download "${names[@]}") >"$work/log" 2>&1 || return
    (unpack "$cache/pg/$major") >"$work/log" 2>&1 || return
    rm -rf "$work"
}

mkdir -p "$cache/pg"
archive=$(archive_of_debian)
while read -r major suite base; do
    [ "${1:-}" != oldest ] || [ "$major" = "$oldest" ] || continue
    [ ! -x "$cache/pg/$major/bin/postgres" ] || continue
    [ -n "$archive" ] || { echo "could not find Debian's archive in the system's lists: run apt-get update as root" >&2; exit 1; }
    echo "fetching PostgreSQL $major (Debian $suite)"
    if ! fetch "$major" "$suite" ${base:+"$base"}; then
        reason=$(grep -E '^(E|Err|W|error|patchelf)' "$cache/download/$major/log" | head -n 1)
        echo "PostgreSQL $major can't be had today, and is left out: ${reason:-$(tail -n 1 "$cache/download/$major/log")}" >&2
        case $major in
            "$oldest" | "$newest_released") echo "without PostgreSQL $major nothing can be checked: run it again when the network is back" >&2; exit 1 ;;
        esac
    fi
done <<<"$suites"
