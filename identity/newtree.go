package identity

// NewTree builds a tree of accounts without a database, for tests of other packages.
// Accounts without a path to a root are left out.
func NewTree(accounts ...Account) *Tree {
	tree, _ := buildTree(accounts)
	return tree
}
