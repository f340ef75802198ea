#!/usr/bin/env bash
# servers.sh [MAJOR…]: brings PostgreSQL of these versions, or of all that are checked, into the cache as pg/MAJOR, with its
# headers, its contrib, pg_regress, pg_cron and pgfincore. What is there already stays; to renew it, delete it first.
#
# They are Debian's binary packages, each of the suite that has that version, with the libraries they were linked with, unpacked
# there: nothing is installed into the system, and no other suite gets into its lists. apt looks at the suite's signature, and at
# the hashes of its lists and of each package. What was downloaded before the network failed is not downloaded again.
#
# A version that can't be had today is named and left out. Without the oldest or the newest one this fails.

. "$(dirname "$0")/env.sh"
. tools/debian.sh

oldest=${suites%% *} newest=$(sed -n '$s/ .*//p' <<<"$suites")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# in_suite COMMAND…: apt that knows nothing but the suite in $work, and takes nothing for installed.
in_suite() {
    "$@" -q -o Dir::State="$work" -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
        -o Dir::Cache="$work" -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o APT::Sandbox::User="$(id -un)" \
        -o APT::Get::AllowUnauthenticated=false
}

# packages_of MAJOR: the server's packages, and the libraries that they need. JIT compilation is left out, for its size.
packages_of() {
    local major=$1 extension wanted=("postgresql-$1" "postgresql-client-$1")
    for extension in cron pgfincore; do
        in_suite apt-cache show "postgresql-$major-$extension" >/dev/null 2>&1 && wanted+=("postgresql-$major-$extension")
    done
    in_suite apt-get install --simulate --no-install-recommends "${wanted[@]}" >"$work/log" 2>&1 || return
    printf '%s\n' "${wanted[@]}" "postgresql-server-dev-$major" libpq-dev
    sed -n 's/^Inst \(lib[^ ]*\|zlib1g\) .*/\1/p' "$work/log" | grep -vE '^lib(llvm|z3|perl|.*-perl$)'
}

# unpack FOLDER: what was downloaded, so that it runs from there.
unpack() {
    local to=$1 package library loader file
    rm -rf "$to" "$to.new"
    mkdir "$to.new"
    for package in "$work"/packages/*.deb; do
        dpkg-deb -x "$package" "$to.new" || return
    done
    ln -s "usr/lib/postgresql/$major/bin" "$to.new/bin"
    rm -f "$to.new/usr/lib/postgresql/$major/lib"/llvmjit*
    library=$(cd "$to.new" && find . -name libc.so.6 -printf '%h\n' -quit)
    # A library that was linked with another version of libc needs the loader of that version, too.
    while IFS= read -r file; do
        loader=$(patchelf --print-interpreter "$file" 2>/dev/null) || continue
        loader=$(cd "$to.new" && find . -name "${loader##*/}" -print -quit)
        patchelf --set-interpreter "$to/${loader#./}" --force-rpath --set-rpath "$to/${library#./}" "$file" || return
    done < <(find "$to.new/usr/lib/postgresql" -type f -perm -u+x)
    mv "$to.new" "$to"
    (cd / && "$to/bin/postgres" --version && "$to/bin/pg_config" --version) >/dev/null || { rm -rf "$to"; return 1; }
}

# fetch MAJOR SUITE
fetch() {
    local major=$1 suite=$2 work=$cache/download/$1 names
    mkdir -p "$work"/{lists,archives}/partial "$work/packages"
    : >"$work/status"
    echo "deb [signed-by=$keyring target=Packages] $archive $suite main" >"$work/sources.list"
    in_suite apt-get update --error-on=any >"$work/log" 2>&1 || return
    mapfile -t names < <(packages_of "$major")
    [ ${#names[@]} -gt 0 ] || return
    (cd "$work/packages" && in_suite apt-get download "${names[@]}") >"$work/log" 2>&1 || return
    unpack "$cache/pg/$major" >"$work/log" 2>&1 || return
    rm -rf "$work"
}

mkdir -p "$cache/pg"
archive=$(archive_of_debian)
while read -r major suite; do
    [ $# = 0 ] || [[ " $* " = *" $major "* ]] || continue
    [ ! -x "$cache/pg/$major/bin/postgres" ] || continue
    [ -n "$archive" ] || { echo "could not find Debian's archive in the system's lists: run apt-get update as root" >&2; exit 1; }
    echo "fetching PostgreSQL $major (Debian $suite)"
    if ! fetch "$major" "$suite"; then
        reason=$(grep -E '^(E|Err|W|error|patchelf)' "$cache/download/$major/log" | head -n 1)
        echo "PostgreSQL $major can't be had today, and is left out: ${reason:-$(tail -n 1 "$cache/download/$major/log")}" >&2
        case $major in
            "$oldest" | "$newest") echo "without PostgreSQL $major nothing can be checked: run it again when the network is back" >&2; exit 1 ;;
        esac
    fi
done <<<"$suites"
