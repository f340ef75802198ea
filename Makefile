# pg_io_probe
#
#   make                builds for the PostgreSQL of PG_CONFIG
#   make install        copies what was built (DESTDIR works as usual)
#   make installcheck   runs the regression tests against the server that PGHOST and PGPORT name
#   make deps           installs what is missing here to build and to check
#   make check          runs everything that can be checked, on every PostgreSQL that deps brought
#   make check-all      runs the check with each case on each of them, and each fault many times: hours
#   make check-fresh    runs the demo and the check on a new Debian, from nothing, as root and as a user with sudo
#   make check-server   runs the server's own regression suite while probes run beside it
#   make check-memory   runs core's tests under sanitizers, Miri and valgrind
#   make demo           shows what the extension does, on a server of its own (KEEP=1 leaves it running)
#   make deb            makes a Debian package for each PostgreSQL that deps brought
#   make printed        prints what follows from the declaration in surface/: the script of CREATE EXTENSION, docs/columns.md, tests/calls.json
#   make dist           makes the archive of this version that PGXN takes
#   make fuzz           feeds the parsers inputs that a fuzzer makes up, half an hour each
#   make bench          compares with the tools that one would use without the extension

EXTENSION = pg_io_probe
REGRESS = extension device cache seqscan random depth ping sync readahead page_cost recommend recommend_costs correlation iostat history compare bad_input privileges search_path settings explain report lock upgrade cleanup

PG_CONFIG = pg_config

# These are evaluated where they are used: deps, check and demo need no pg_config.
pg_major = $(shell $(PG_CONFIG) --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
bindir = $(shell $(PG_CONFIG) --bindir)
libdir = $(shell $(PG_CONFIG) --pkglibdir)
extdir = $(shell $(PG_CONFIG) --sharedir)/extension
version = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
pg_regress = $(dir $(shell $(PG_CONFIG) --pgxs))../test/regress/pg_regress
# A folder for each version: in a common one, each would compile anew what they share.
target = $(or $(CARGO_TARGET_DIR),target)/pg$(pg_major)
library = $(target)/release/lib$(EXTENSION).so
# Of this version, and of those that were released, so that CREATE EXTENSION can make any of them.
scripts = $(EXTENSION).control sql/$(EXTENSION)--*.sql

all:
	PGRX_PG_CONFIG_PATH=$(shell command -v $(PG_CONFIG)) cargo rustc --release --lib --ignore-rust-version --target-dir $(target) --features pg$(pg_major),$(PG_IO_PROBE_FEATURES) -- $(RUSTC_OPTIONS)

install:
	@test -f $(library) || { echo 'run make PG_CONFIG=$(PG_CONFIG) first' >&2; exit 1; }
	install -d $(DESTDIR)$(libdir) $(DESTDIR)$(extdir)
	install -m 755 $(library) $(DESTDIR)$(libdir)/$(EXTENSION).so
	install -m 644 $(scripts) $(DESTDIR)$(extdir)

uninstall:
	rm -f $(DESTDIR)$(libdir)/$(EXTENSION).so
	rm -f $(DESTDIR)$(extdir)/$(EXTENSION).control $(DESTDIR)$(extdir)/$(EXTENSION)--*.sql

installcheck:
	$(pg_regress) --bindir=$(bindir) --dbname=contrib_regression $(REGRESS_OPTS) $(REGRESS)

deps:
	tools/deps.sh check

check:
	tools/check.sh

check-all:
	PG_IO_PROBE_LONG=1 tools/check.sh

check-fresh:
	tools/fresh.sh

check-server:
	tools/suite.sh

check-memory:
	tools/sanitize.sh

demo:
	KEEP=$(KEEP) tools/demo.sh

deb:
	tools/deb.sh

printed:
	cargo build -q -p io_probe_surface
	cargo run -q -p io_probe_surface -- script >sql/$(EXTENSION)--$(version).sql
	cargo run -q -p io_probe_surface -- columns >docs/columns.md
	cargo run -q -p io_probe_surface -- calls >tests/calls.json

dist:
	git archive --format zip --prefix pg_io_probe-$(version)/ -o pg_io_probe-$(version).zip HEAD

fuzz:
	tools/fuzz.sh

bench:
	tools/deps.sh bench
	cargo bench -q -p io_probe_core --bench costs
	set -e; for script in bench/*.sh; do [ ! -x "$$script" ] || "$$script"; done

clean:
	cargo clean

.PHONY: deb dist printed all install uninstall installcheck deps check check-all check-fresh check-server check-memory demo fuzz bench clean
