package identity

import (
	"fmt"

	"trunkline/internal/fault"
)

// MaxDepth is the maximum number of accounts from an account to its root, both included.
// Deeper trees of earlier versions work, and do not grow.
const MaxDepth = 16

// rootFactor is the number by which AccountsPerTenant is multiplied for a root account,
// below which an operator may have many tenants.
const rootFactor = 100

// checkLimits returns fault.KindInvalid if moved (nil: an account to create) would be deeper
// than MaxDepth below parent (nil: a root account), or have an account deeper than that
// below itself, and fault.KindConflict if parent or an account above it would have more
// accounts below it than perTenant, or a root account rootFactor times as many.
func (t *Tree) checkLimits(parent, moved *node, perTenant int) error {
	if parent == nil {
		return nil
	}

	added := 1
	height := 1
	if moved != nil {
		added, height = moved.below+1, t.heightOf(moved)
	}
	if parent.depth+height > MaxDepth {
		return fault.InvalidField("parent_id", "too_deep", fmt.Sprintf("accounts can be nested %d deep", MaxDepth))
	}

	for n := parent; n != nil; n = n.parent {
		if moved != nil && t.Contains(n.account.ID, moved.account.ID) {
			return nil // it is below n and those above n already
		}

		limit := perTenant
		if n.parent == nil {
			limit *= rootFactor
		}
		if n.below+added > limit {
			return fault.Conflict("The account %s would have more than %d accounts below it (auth.accounts_per_tenant)",
				quote(n.account.ID), limit)
		}
	}

	return nil
}

// heightOf returns the number of levels of n and the accounts below it.
func (t *Tree) heightOf(n *node) int {
	deepest := n.depth
	for _, other := range t.nodesByID {
		if other.depth > deepest && t.Contains(n.account.ID, other.account.ID) {
			deepest = other.depth
		}
	}
	return deepest - n.depth + 1
}
