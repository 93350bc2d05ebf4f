package main

import "trunkline/cmd/internal/cli"

// validate checks the flags.
func (b *apiBench) validate() error {
	if err := b.validateAccounts(); err != nil {
		return err
	}
	switch {
	case b.connections < 1 || b.connections > 10_000:
		return cli.Usagef("--connections must be from 1 to 10000, is %d", b.connections)
	case b.users < 0 || b.users > maxCallers:
		return cli.Usagef("--users must be from 0 to %d, is %d", maxCallers, b.users)
	case b.records < 1 || b.records > 1_000_000:
		return cli.Usagef("--records must be from 1 to 1000000, is %d", b.records)
	}
	if err := b.parseMix(); err != nil {
		return err
	}
	return b.validateShared(true)
}
