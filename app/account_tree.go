package app

import (
	"trunkline/identity"
)

// accountTree implements stats.AccountTree.
type accountTree struct{ directory *identity.Directory }

// Ancestors implements stats.AccountTree.
func (t accountTree) Ancestors() map[string][]string {
	all := map[string][]string{}
	tree := t.directory.Tree()
	for _, account := range tree.Accounts() {
		above := []string{}
		// The tree has no cycles (identity.Tree): the bound would end one all the same.
		for parent := account.ParentID; parent != "" && len(above) < len(all)+1000; {
			found, ok := tree.Account(parent)
			if !ok {
				break
			}
			above = append(above, parent)
			parent = found.ParentID
		}

		all[account.ID] = above
	}

	return all
}
