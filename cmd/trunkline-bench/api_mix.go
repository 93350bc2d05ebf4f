package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load/requests"
)

// The operations.
const (
	opLogin         = "login"
	opToken         = "token"
	opEncryptionGet = "encryption-get"
	opEncryptionPut = "encryption-put"
	opCall          = "call"
	opLookup        = "lookup"
	opReport        = "report"
)

var allOperations = []string{opLogin, opToken, opEncryptionGet, opEncryptionPut, opCall, opLookup, opReport}

// defaultMix resembles the requests of a contact center's tools.
const defaultMix = "login=1,token=30,encryption-get=10,encryption-put=1,call=3,lookup=45,report=10"

// needsOwnAccounts reports whether the operation needs accounts created by the run.
func needsOwnAccounts(operation string) bool {
	return operation == opCall || operation == opEncryptionPut
}

// parseMix parses the operations and their weights.
func (b *apiBench) parseMix() error {
	text := b.mix
	if text == "" {
		text = defaultMix
	}
	b.weights = map[string]int{}
	sum := 0
	for part := range strings.SplitSeq(text, ",") {
		name, share, hasShare := strings.Cut(strings.TrimSpace(part), "=")
		if !slices.Contains(allOperations, name) {
			return cli.Usagef("--mix has an unknown operation %q: choose from %s", name,
				strings.Join(allOperations, ", "))
		}
		weight := 1
		if hasShare {
			var err error
			weight, err = strconv.Atoi(share)
			if err != nil || weight < 1 || weight > requests.MaxWeight {
				return cli.Usagef("--mix: the share of %s is from 1 to %d, not %q", name, requests.MaxWeight, share)
			}
		}
		_, repeated := b.weights[name]
		if repeated {
			return cli.Usagef("--mix names %s twice", name)
		}
		b.weights[name] = weight
		sum += weight
	}
	if sum > requests.MaxWeight {
		return cli.Usagef("--mix: the shares are at most %d together, not %d", requests.MaxWeight, sum)
	}
	if b.username == "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.weights)) {
		if needsOwnAccounts(name) && b.mix != "" {
			return cli.Usagef("--mix: %s is only for accounts created by the run: omit --username", name)
		}
		if needsOwnAccounts(name) {
			delete(b.weights, name)
		}
	}
	return nil
}

// hasOperation reports whether the mix contains the operation.
func (b *apiBench) hasOperation(operation string) bool { return b.weights[operation] > 0 }

// share returns the operation's fraction of all requests, 0 to 1.
func (b *apiBench) share(operation string) float64 {
	sum := 0
	for _, weight := range b.weights {
		sum += weight
	}
	return float64(b.weights[operation]) / float64(sum)
}
