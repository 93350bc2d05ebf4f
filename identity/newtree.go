package identity

// NewTree builds a tree of accounts without a database: for packages that want
// one in a test. Accounts that do not lead to a root are left out.
func NewTree(accounts ...Account) *Tree {
	tree, _ := buildTree(accounts)
	return tree
}
