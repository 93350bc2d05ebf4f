PREFIX  ?= /usr/local
LIB     ?= /usr/lib
VERSION := $(shell deploy/version.sh)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE    := $(shell deploy/version.sh date)
# GOGC: the compiler collects garbage less often, which takes a quarter of its CPU, for 0.9 GB in
# place of 0.6 GB at most. What it makes is the same, so that the cache is shared with tests.
BUILD    = GOGC=400 go build -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)'
# The first build on a new machine compiles everything: without inlining and debug information that
# takes two thirds of the time. Programs that are installed, released or measured have both.
QUICK    = $(BUILD) -gcflags='all=-l -dwarf=false'
SERVICES = go run ./internal/testservice/cmd/services
# The race detector skips packages that only compute and share no data between goroutines: SQLite
# (translated from C), ciphers, hashes, compression and the table of phone numbers. With it they
# would take a third of the time of all tests. The rest of modernc.org is only excluded from the
# checks of pointer arithmetic, not from race detection. e2e builds the program with the same
# flags.
export RACEFLAGS = -race -gcflags=modernc.org/...=-d=checkptr=0 $(patsubst %,-gcflags=%=-race=false,modernc.org/sqlite/lib golang.org/x/crypto/argon2 golang.org/x/crypto/blake2b crypto/pbkdf2 crypto/internal/fips140/... compress/flate github.com/nyaruka/phonenumbers)
RACE     = go test $(RACEFLAGS) -vet=off
MEASURE  = go run -C .ci/benchmarks . -root '$(CURDIR)' $(if $(OLD),-old '$(OLD)') $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(ROWS),-rows '$(ROWS)')
FUZZTIME ?= 10s
BENCH    ?= .
KUBERNETES = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/trunkline/kubernetes

# Everything built here uses the same flags, so that lint, tests and programs share the build
# cache, in any folder. By default a program with the race detector waits a second before it
# exits, also each command of the tests; GORACE turns that off.
export GOFLAGS += -trimpath -buildvcs=false
export GORACE  ?= atexit_sleep_ms=0

SHELL       = /bin/bash
.SHELLFLAGS = -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help run build check test test-short test-race test-services test-stress test-e2e lint fmt fuzz bench benchmarks compare services services-stop artifacts release upgrade-test kubernetes arm64 compose image up down install site

help: ## list the targets
	@awk -F ': .*## |: ## ' '/^[a-z0-9-]+:.* ## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build and run a server on the embedded backends with demo traffic; Ctrl-C stops both
	@$(QUICK) -o bin/ ./cmd/trunkline
	@deploy/run.sh bin/trunkline

build: ## bin/trunkline and bin/trunkline-bench
	$(BUILD) -o bin/ ./cmd/trunkline ./cmd/trunkline-bench

check: ## for every commit: lint, unit tests and golden files, in under two minutes with a warm cache
	@$(MAKE) --no-print-directory -j 2 -Otarget lint test-short

# Packages whose tests are all skipped with -short are not linked. The tests of some others wait
# more than they compute.
test-short: ## unit tests and golden files, without services
	go test -short -vet=off -p 8 -timeout 5m $(filter-out trunkline/cmd/trunkline-bench trunkline/clients/conformance,$(ALL_PACKAGES))

test: ## all tests with the race detector and real Kafka, Redis and PostgreSQL
	@$(SERVICES) run -- $(MAKE) --no-print-directory -j 2 -k -Otarget test-e2e test-services test-stress test-race

# The parts of test; each prints its duration. The parts with services use running ones whose
# addresses are in the environment: eval "$$(make -s services)". test runs two parts at a time,
# each with two packages at a time, because many tests wait more than they compute. It prints the output
# of each part at its end, and runs all parts even if one fails. lint runs go vet.
USE_SERVICES = $(shell go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/internal\/testservice/ {print $$1}' | grep -v '/e2e$$\|/deploy$$')
ALL_PACKAGES = $(shell go list ./... | grep -v '/e2e$$\|/deploy$$')
timed        = @start=$$SECONDS; $(2); code=$$?; echo "== $(1): $$((SECONDS - start)) s, $$([ $$code = 0 ] && echo passed || echo FAILED)"; exit $$code

test-race: ## packages that need no services
	$(call timed,$@,$(RACE) -p 2 -timeout 40m $(filter-out $(USE_SERVICES),$(ALL_PACKAGES)))

test-services: ## packages whose tests use real Kafka, Redis or PostgreSQL
	$(call timed,$@,$(RACE) -p 2 -timeout 60m -skip '^TestStress' $(USE_SERVICES))

test-stress: ## faults under load: fanout with real Kafka and Redis
	$(call timed,$@,$(RACE) -timeout 20m -run '^TestStress' ./fanout)

test-e2e: ## the built program end to end; the chart, compose and the image
	$(call timed,$@,$(RACE) -p 2 -parallel 4 -timeout 60m ./e2e ./deploy)
	$(call timed,test-chart,(cd .ci/chart && go test -vet=off -timeout 10m ./...) && (cd .ci/release && go test -vet=off ./...) && (cd .ci/benchmarks && go test -vet=off ./...))

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool -modfile=.ci/tools.mod staticcheck ./...
	cd .ci/chart && go vet ./...
	cd .ci/s3 && go vet ./...
	cd .ci/sbom && go vet ./...
	cd .ci/release && go vet ./...
	cd .ci/benchmarks && go vet ./...

fmt: ## gofmt everything
	gofmt -l -w .

fuzz: ## every fuzz target for FUZZTIME each (10s)
	@go test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ {target[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, target[i]; n = 0}' \
	| while read -r package target; do \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
	done

bench: ## benchmarks that match BENCH (all), as tables for docs/benchmarks.md
	@mkdir -p bin
	@$(SERVICES) run -- go test -run '^$$' -bench '$(BENCH)' -benchmem -p 1 -timeout 60m ./... >bin/bench.txt \
	|| { cat bin/bench.txt; exit 1; }
	@awk -f deploy/bench.awk bin/bench.txt

benchmarks: ## all tables of docs/benchmarks.md, beside an earlier build and Centrifugo: make benchmarks [OLD=<revision>] [ROUNDS=2] [ROWS=<regexp>]; an hour, on an idle machine
	@mkdir -p bin
	@$(SERVICES) run -- $(MEASURE)

compare: ## the path of an event beside an earlier build and Centrifugo, printed: make compare [OLD=<revision>] [ROUNDS=2] [ROWS=<regexp>]
	@$(MEASURE) -page '' -results '' -rows '$(or $(ROWS),^(one-1000-ws|busy|highest-5000-ws|many|hundred)$$)'

services: ## start Kafka, Redis and PostgreSQL on loopback; use: eval "$(make -s services)"
	@$(SERVICES) start

services-stop: ## stop the services
	@$(SERVICES) stop

artifacts: ## files of the image, licences, bill of materials (CycloneDX), checksums: bin/image, bin/release
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 0) \
	&& deploy/image.sh '$(VERSION)' '$(COMMIT)' bin/image \
	&& rm -rf bin/release && mkdir -p bin/release \
	&& cp bin/image/trunkline bin/release/trunkline \
	&& cp bin/image/LICENSE bin/image/THIRD_PARTY_NOTICES bin/release/ \
	&& go run -C .ci/sbom . '$(CURDIR)/bin/image/trunkline' '$(CURDIR)' '$(VERSION)' >bin/release/trunkline.cdx.json \
	&& cd bin/release && sha256sum trunkline trunkline.cdx.json LICENSE THIRD_PARTY_NOTICES >SHA256SUMS

release: ## binaries, deb, rpm, image, chart, clients' packages, checksums: bin/release
	@deploy/release.sh '$(VERSION)' '$(COMMIT)'

upgrade-test: ## the version before, this one and back, under load: make upgrade-test [OLD=<revision>]
	@TRUNKLINE_TEST_BEFORE=$$(deploy/before.sh $(OLD)) $(SERVICES) run -- \
	go test -vet=off -v -count=1 -timeout 30m -run '^TestUpgradeAndBack' ./e2e

kubernetes: ## the chart on a Kubernetes of one node, built from its modules: restarts, upgrade and rollback under load; needs root
	@.ci/kubernetes/build.sh '$(KUBERNETES)' '$(OLD)' && .ci/kubernetes/run.sh '$(KUBERNETES)'

arm64: ## the program for arm64 under qemu-user: version, and events to WebSocket clients
	@.ci/arm64

compose: ## deploy/compose.yaml on a Docker of its own, with stand-ins for the images of others, under load; needs root
	@.ci/compose/run.sh

image: artifacts ## container image trunkline:VERSION, and artifacts; needs Docker
	docker build -f deploy/Dockerfile --target image -t trunkline:$(VERSION) bin/image

up: ## start deploy/compose.yaml with Docker on this machine
	@$(MAKE) image
	TRUNKLINE_VERSION=$(VERSION) deploy/compose/up.sh

down: ## stop the containers of up; keeps their data
	docker compose -f deploy/compose.yaml down

site: ## the pages of docs as files for a web server: bin/site
	@rm -rf bin/site && go run ./docs/site/export . bin/site && echo bin/site/index.html

install: ## binary, systemd unit and example settings, to DESTDIR and PREFIX (/usr/local)
	$(BUILD) -o $(DESTDIR)$(PREFIX)/bin/trunkline ./cmd/trunkline
	install -d $(DESTDIR)$(LIB)/systemd/system $(DESTDIR)$(LIB)/sysusers.d $(DESTDIR)$(LIB)/tmpfiles.d
	install -d -m 750 $(DESTDIR)/etc/trunkline
	sed 's#@PREFIX@#$(PREFIX)#' deploy/systemd/trunkline.service >$(DESTDIR)$(LIB)/systemd/system/trunkline.service
	sed 's#@PREFIX@#$(PREFIX)#' deploy/systemd/trunkline-recording-send.service >$(DESTDIR)$(LIB)/systemd/system/trunkline-recording-send.service
	install -m 644 deploy/systemd/trunkline.sysusers $(DESTDIR)$(LIB)/sysusers.d/trunkline.conf
	install -m 644 deploy/systemd/trunkline.tmpfiles $(DESTDIR)$(LIB)/tmpfiles.d/trunkline.conf
	test -e $(DESTDIR)/etc/trunkline/trunkline.yaml || install -m 640 deploy/trunkline.example.yaml $(DESTDIR)/etc/trunkline/trunkline.yaml
	test -e $(DESTDIR)/etc/trunkline/environment || install -m 640 deploy/systemd/trunkline.environment $(DESTDIR)/etc/trunkline/environment
	test -e $(DESTDIR)/etc/trunkline/recording-send.environment || install -m 640 deploy/systemd/recording-send.environment $(DESTDIR)/etc/trunkline/recording-send.environment
	@test -n "$(DESTDIR)" || echo "now: systemd-sysusers; systemd-tmpfiles --create; systemctl daemon-reload; systemctl enable --now trunkline"
