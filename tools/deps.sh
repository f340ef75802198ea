#!/usr/bin/env bash
# deps.sh check|demo|suite|bench|deb: installs what is missing to build, and to check, to run the demo, to run the server's own
# suite, to measure beside other tools or to make packages; run again, it does nothing.
#   packages  by apt-get, as root or with CI set; else it prints the one line to run, and stops
#   servers   PostgreSQL of each version, into the cache: see servers.sh; the demo needs the oldest only
#   crates    those of Cargo.lock, into Cargo's own cache; where devices are made up, those of devices/, too

. "$(dirname "$0")/env.sh"

packages=(build-essential clang libclang-dev libicu-dev libssl-dev pkg-config)
check=(patchelf python3 strace)
case ${1:-} in
    check) packages+=("${check[@]}") ;;
    demo) packages+=(patchelf) ;;
    suite) packages+=("${check[@]}" bison flex liburing-dev) ;;
    deb) packages+=("${check[@]}" debhelper fakeroot go-md2man lintian) ;;
    bench) packages+=("${check[@]}" fio gnuplot-nox ioping sysstat) ;;
    *) echo "usage: deps.sh check|demo|suite|bench|deb" >&2; exit 2 ;;
esac

install_packages() {
    local package missing=() run=()
    for package in "${packages[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    if [ "$(id -u)" != 0 ]; then
        run=(sudo)
        if [ -z "${CI:-}" ]; then
            echo "these packages are missing; install them and try again:" >&2
            echo "sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
            trap - EXIT
            exit 1
        fi
    fi
    echo "installing ${missing[*]}"
    "${run[@]}" apt-get update -q
    "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
}

leave() {
    local status=$?
    [ "$status" = 0 ] || echo 'not everything that is needed could be had (the reason is above): run it again, it goes on from here' >&2
}
trap leave EXIT
command -v cargo >/dev/null || { echo "could not find cargo: install Rust with rustup" >&2; exit 1; }
install_packages
mkdir -p "$cache"
case ${1:-} in
    check | bench | deb) tools/servers.sh ;;
    demo) tools/servers.sh oldest ;;
esac
cargo fetch --quiet --locked
case ${1:-} in check | bench) cargo fetch --quiet --locked --manifest-path devices/Cargo.toml ;; esac
