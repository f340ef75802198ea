#!/usr/bin/env bash
# deb.sh [PG_CONFIG…]: makes a Debian package for each of these servers, or for each in the cache, in target/deb, with its debug
# symbols apart, and asks lintian. DEBFULLNAME and DEBEMAIL name the maintainer.
#
# deb.sh test PACKAGE: installs it on a new Debian 12, made by debootstrap in a folder that is deleted afterwards, calls the
# extension there, upgrades to it from a made-up version before, and removes and purges it. As root.

. "$(dirname "$0")/env.sh"
. tools/debian.sh

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# To Debian a candidate comes before its release.
debian_version=${version/-/\~}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/pg_io_probe_deb.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM

# stage PG_CONFIG MAJOR: builds for it, and lays out what goes below / on a Debian machine.
stage() {
    local pg_config=$1 major=$2 root=$work/stage/$2 library=usr/lib/postgresql/$2/lib share=usr/share/postgresql/$2
    CARGO_TARGET_DIR=$target make -s PG_CONFIG="$pg_config"
    CARGO_TARGET_DIR=$target make -s install PG_CONFIG="$pg_config" DESTDIR="$work/built"
    mkdir -p "$root/$library" "$root/$share/extension" "$root/$share/man/man7"
    mv "$work/built$("$pg_config" --pkglibdir)"/* "$root/$library"
    mv "$work/built$("$pg_config" --sharedir)"/extension/* "$root/$share/extension"
    chmod 644 "$root/$library"/*
    manual | gzip -9n >"$root/$share/man/man7/pg_io_probe.7.gz"
}

# manual: each function, column and setting as a manual page.
manual() {
    {
        echo "pg_io_probe 7 \"$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" +%F)\" pg_io_probe \"PostgreSQL extension\""
        echo '==='
        printf '\n# NAME\npg_io_probe - measures storage from inside PostgreSQL\n\n'
        sed '1d' docs/columns.md
    } >"$work/manual.md"
    go-md2man -in "$work/manual.md" -out /dev/stdout
}

make_packages() {
    local pg_config major majors=() source=$work/pg-io-probe-$version
    mkdir -p "$source" "$target/deb"
    cp -a debian CHANGELOG.md README.md docs "$source"
    export DEBFULLNAME=${DEBFULLNAME:-pg_io_probe contributors} DEBEMAIL=${DEBEMAIL:-pg-io-probe@invalid}
    for pg_config; do
        major=$("$pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
        majors+=("$major")
        stage "$pg_config" "$major"
        sed "s/@MAJOR@/$major/g; s/@MAINTAINER@/$DEBFULLNAME <$DEBEMAIL>/" debian/control.in >"$work/control"
        # The paragraph of the source stands once, before the packages.
        [ ${#majors[@]} = 1 ] || sed -i '1,/^$/d' "$work/control"
        { [ ${#majors[@]} = 1 ] || echo; cat "$work/control"; } >>"$source/debian/control"
        printf '%s\n' README.md docs/[a-z]*.md >"$source/debian/postgresql-$major-pg-io-probe.docs"
    done
    rm "$source/debian/control.in"
    {
        printf 'pg-io-probe (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n' "$debian_version"
        printf ' -- %s <%s>  %s\n' "$DEBFULLNAME" "$DEBEMAIL" "$(git log -1 --format=%cD)"
    } >"$source/debian/changelog"
    (cd "$source" && STAGE=$work/stage MAJORS="${majors[*]}" dpkg-buildpackage -b -us -uc -rfakeroot >"$work/log" 2>&1) ||
        { cat "$work/log"; exit 1; }
    # It closes no bug of Debian's; and packages for one's own use need no address.
    local known=initial-upload-closes-no-bugs
    [ "$DEBEMAIL" != pg-io-probe@invalid ] || known+=,bogus-mail-host,bogus-mail-host-in-debian-changelog
    lintian --allow-root --suppress-tags "$known" --fail-on error,warning "$work"/*.changes
    cp "$work"/*.deb "$target/deb"
    ls "$target"/deb/*"_$debian_version-1_"*.deb
}

# in_root COMMAND…: runs it on the new system.
in_root() {
    chroot "$work/root" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# leave_root: ends what runs there, and deletes it.
leave_root() {
    in_root pg_ctlcluster "$major" main stop -m immediate 2>/dev/null || true
    umount "$work/root/proc"
    rm -rf --one-file-system "$work"
}

# upgrade PACKAGE: puts a package of the version 0.9 in place of the one of this, which differs in nothing else, makes the
# extension by it, and upgrades both.
upgrade() {
    local before=$work/before extension
    dpkg-deb -R "$work/root/package.deb" "$before"
    extension=$before/usr/share/postgresql/$major/extension
    sed -i 's/^Version: .*/Version: 0.9-1/' "$before/DEBIAN/control"
    sed -i "s/^default_version = .*/default_version = '0.9'/" "$extension/pg_io_probe.control"
    mv "$extension/pg_io_probe--$version.sql" "$extension/pg_io_probe--0.9.sql"
    dpkg-deb -b "$before" "$work/root/before.deb" >>"$work/log"
    in_root su postgres -c 'psql -Xq -c "DROP EXTENSION pg_io_probe"'
    in_root apt-get remove -qy "$1" >>"$work/log" 2>&1
    in_root apt-get install -qy ./before.deb >>"$work/log" 2>&1
    in_root su postgres -c 'psql -Xq -v ON_ERROR_STOP=1 -c "CREATE EXTENSION pg_io_probe"'
    in_root apt-get install -qy ./package.deb >>"$work/log" 2>&1
    echo '-- Nothing has changed.' >"$work/root/usr/share/postgresql/$major/extension/pg_io_probe--0.9--$version.sql"
    in_root su postgres -c "psql -XqAt -v ON_ERROR_STOP=1 -c 'ALTER EXTENSION pg_io_probe UPDATE' \
        -c 'SELECT count(*) FROM io_probe_ping(\$\$tbl\$\$, count => 1)' \
        -c 'SELECT extversion FROM pg_extension WHERE extname = \$\$pg_io_probe\$\$'" | tail -1 | grep -qx "$version" ||
        { echo 'the extension was not upgraded'; exit 1; }
    rm "$work/root/usr/share/postgresql/$major/extension/pg_io_probe--0.9--$version.sql"
    echo "ok      upgraded from a version before"
}

test_package() {
    local package=$1 name
    name=$(dpkg-deb -f "$package" Package)
    major=$(cut -d - -f 2 <<<"$name")
    debootstrap --variant=minbase bookworm "$work/root" "$(archive_of_debian)" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    cp "$package" "$work/root/package.deb"
    cp -L /etc/resolv.conf /etc/hosts "$work/root/etc/"
    mount -t proc proc "$work/root/proc"
    trap leave_root EXIT
    local start=$SECONDS
    in_root apt-get update -q >"$work/log"
    in_root apt-get install -qy --no-install-recommends ./package.deb >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    in_root pg_ctlcluster "$major" main start
    in_root su postgres -c "psql -X -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pg_io_probe' \
        -c 'CREATE TABLE tbl AS SELECT i, repeat(chr(120), 900) AS t FROM generate_series(1, 50000) i' -c CHECKPOINT \
        -c 'SELECT * FROM io_probe_seqscan(\$\$tbl\$\$)'"
    echo "ok      from nothing to the first row: $((SECONDS - start)) s"
    upgrade "$name"
    in_root test -s "/usr/share/postgresql/$major/man/man7/pg_io_probe.7.gz"
    in_root apt-get remove -qy "$name" >>"$work/log" 2>&1
    ! in_root test -e "/usr/lib/postgresql/$major/lib/pg_io_probe.so" || { echo 'the library is still there'; exit 1; }
    in_root apt-get install -qy ./package.deb >>"$work/log" 2>&1
    in_root apt-get purge -qy "$name" >>"$work/log" 2>&1
    ! in_root dpkg-query -s "$name" >/dev/null 2>&1 || { echo 'something is left'; exit 1; }
    echo "ok      removed and purged"
}

case ${1:-} in
    test) test_package "$2" ;;
    *)
        tools/deps.sh deb
        configs=("$@")
        [ $# -gt 0 ] || mapfile -t configs < <(pg_configs)
        make_packages "${configs[@]}"
        ;;
esac
