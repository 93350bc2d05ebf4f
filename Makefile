PREFIX  ?= /usr/local
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILD    = go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)'
SERVICES = go run -buildvcs=false ./internal/testservice/cmd/services
FUZZTIME ?= 10s
BENCH    ?= .

SHELL       = /bin/bash
.SHELLFLAGS = -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help run test lint fmt fuzz bench services services-stop image install

help: ## list the targets
	@awk -F ': ## ' '/^[a-z-]+: ##/ {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, then serve on the embedded default with the demo beside it; Ctrl-C ends both
	@$(BUILD) -o bin/trunkline ./cmd/trunkline
	@deploy/run.sh bin/trunkline

test: ## all tests, race detector on, with real Kafka, Redis and PostgreSQL
	$(SERVICES) run -- go test -race -p 2 -timeout 20m ./...

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool -modfile=.ci/tools.mod staticcheck ./...

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

services: ## start Kafka, Redis and PostgreSQL on loopback; use: eval "$(make -s services)"
	@$(SERVICES) start

services-stop: ## end what services started
	@$(SERVICES) stop

image: ## a container image, trunkline:VERSION
	docker build -f deploy/Dockerfile --build-arg VERSION=$(VERSION) -t trunkline:$(VERSION) .

install: ## the binary to PREFIX/bin (/usr/local)
	$(BUILD) -o $(DESTDIR)$(PREFIX)/bin/trunkline ./cmd/trunkline
