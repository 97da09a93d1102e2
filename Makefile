# SPDX-License-Identifier: LGPL-2.1-or-later
# A thin front of Meson and Ninja: `make demo` and `make test` do everything on a bare Debian machine.
#
# BUILD     build directory
# PREFIX    where `make install` puts things; without it the prefix that the build directory was configured with
# DESTDIR   staging directory in front of PREFIX
BUILD ?= build

.PHONY: all deps deps-build deps-demo deps-test configure demo test install clean

all: configure
	ninja -C $(BUILD)

deps:
	@tools/deps build demo test

deps-build:
	@tools/deps build

deps-demo:
	@tools/deps build demo

deps-test:
	@tools/deps build test

configure: deps-build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --buildtype=release $(if $(PREFIX),--prefix=$(abspath $(PREFIX)))
ifneq ($(PREFIX),)
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
endif

# No more than it needs: building all takes as long as the demonstration itself.
demo: deps-demo configure
	ninja -C $(BUILD) demo-programs
	bench/parsec/demo --build-dir $(abspath $(BUILD))

# What deps-test has installed may be new to an older build directory, which then has fewer tests: it is looked for again.
test: deps-test
	@test ! -f $(BUILD)/build.ninja || meson setup --reconfigure $(BUILD) >/dev/null
	@$(MAKE) --no-print-directory configure
	@tools/venv $(BUILD) & ninja -C $(BUILD) && wait && tests/run $(BUILD)

# meson would rebuild as the user that called sudo and ask questions; `all` has built already.
install: all
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild --quiet

clean:
	rm -rf $(BUILD)
