package kazoo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/telephony/crossbar"
)

const (
	requestTimeout      = 10 * time.Second // of one request to Crossbar
	maxParallelRequests = 8                // to Crossbar, of one snapshot
)

// kazooAccount is an account of Kazoo.
type kazooAccount struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Realm string   `json:"realm"`
	Tree  []string `json:"tree"` // ids of its ancestors, the root first
}

// accountsBelow returns the account of the API key, without a tree, and all below it.
func accountsBelow(ctx context.Context, c *crossbar.Client) (all []kazooAccount, err error) {
	root, err := c.Account(ctx)
	if err == nil && !isKazooID(root) {
		err = errors.New("logging in to Crossbar: the answer has no account of Kazoo")
	}
	if err != nil {
		return nil, err
	}

	var top kazooAccount
	if err := c.Get(ctx, crossbar.AccountPath(root), &top); err != nil {
		return nil, fmt.Errorf("reading the account of the API key: %w", err)
	}
	if err := c.Get(ctx, crossbar.AccountPath(root, "descendants")+"?paginate=false", &all); err != nil {
		return nil, fmt.Errorf("reading the descendants: %w", err)
	}

	top.ID, top.Tree = root, nil
	return append([]kazooAccount{top}, all...), nil
}
