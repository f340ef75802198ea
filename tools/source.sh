#!/usr/bin/env bash
# PostgreSQL's source from Debian's source packages. Source it after env.sh, then:
#   unpack_source MAJOR WORK  makes the folder WORK anew, with the source of that version in WORK/build
# Debian's archive is where the system's package lists came from; the lists of the other suite stay apart from them.

suite_of() {
    case $1 in
        15) echo bookworm ;;
        17) echo trixie ;;
        18) echo forky ;;
        *) echo "no suite of Debian has PostgreSQL $1" >&2; return 1 ;;
    esac
}

unpack_source() {
    local major=$1 work=$2 archive suite
    suite=$(suite_of "$major")
    archive=$(apt-get indextargets --format "\$(SITE)" 'Identifier: Packages' 'Label: Debian' | sed -n 1p)
    rm -rf "$work"
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/build"
    echo "deb-src $archive $suite main" >"$work/sources.list"
    local apt_options=(-q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work" -o APT::Sandbox::User=root)
    apt-get "${apt_options[@]}" update
    (cd "$work" && apt-get "${apt_options[@]}" source --download-only "postgresql-$major")
    tar -xf "$work"/*.orig.tar.* -C "$work/build" --strip-components 1
}
