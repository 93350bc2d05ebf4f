package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/identity"
)

// withDirectory runs work on the directory of accounts, users and keys: on the
// database itself, beside a running server or without one. A server follows
// within a second.
func (p *program) withDirectory(ctx context.Context, work func(*identity.Service) error) (err error) {
	s, err := p.settings()
	if err != nil {
		return err
	}
	keys, err := backend.MasterKeys(s)
	if err != nil {
		return err
	}
	db, err := backend.Database(ctx, s, p.toolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	directory, err := backend.Identity(ctx, s, db, keys, identity.NewMemoryLimiter(), prometheus.NewRegistry(), p.toolLog())
	if err != nil {
		return err
	}
	return work(directory)
}
