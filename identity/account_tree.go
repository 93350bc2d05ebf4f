package identity

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Tree is an immutable snapshot of the account tree. Its lookups do not allocate.
type Tree struct {
	nodesByID     map[string]*node
	nodesByName   map[string]*node
	nodesByDomain map[string]*node // lower-case
	roots         int              // their number
	root          *node            // the last of several
}

// node is an account in the tree. Nodes know their parents and not their paths: in a deep
// tree the paths would need the square of the memory.
type node struct {
	account Account
	parent  *node // nil for a root
	depth   int   // number of nodes from this one to its root, both included; 0: not computed
	below   int   // number of accounts below
}

// buildTree builds the tree in time and memory linear in the number of accounts, whatever
// their depth. It omits accounts without a path to a root, whose parent is missing or which
// form a cycle, and returns their ids as orphans. This package stores no such accounts.
func buildTree(accounts []Account) (tree *Tree, orphans []string) {
	nodes := make([]node, len(accounts))
	byID := make(map[string]*node, len(accounts))
	for i, account := range accounts {
		nodes[i].account = account
		byID[account.ID] = &nodes[i]
	}

	t := &Tree{
		nodesByID:     byID,
		nodesByName:   make(map[string]*node, len(accounts)),
		nodesByDomain: make(map[string]*node, len(accounts)),
	}

	topDown := make([]*node, 0, len(accounts)) // each after its parent
	for _, n := range byID {
		topDown = appendWithParents(topDown, byID, n)
	}

	for _, n := range slices.Backward(topDown) {
		if n.parent != nil {
			n.parent.below += n.below + 1
		}
	}

	for _, n := range topDown {
		t.nodesByName[n.account.Name] = n
		t.nodesByDomain[n.account.Domain] = n
		if n.parent == nil {
			t.roots++
			t.root = n
		}
	}

	for id, n := range byID {
		if n.depth == 0 {
			orphans = append(orphans, id)
		}
	}

	for _, id := range orphans {
		delete(byID, id)
	}

	slices.Sort(orphans)
	return t, orphans
}

// appendWithParents sets parent and depth of n and of the nodes above it that do not have
// them, and appends these nodes to topDown, the highest first. It appends nothing if there
// is no path to a root.
func appendWithParents(topDown []*node, byID map[string]*node, n *node) []*node {
	first := len(topDown)
	for n != nil && n.depth == 0 {
		if len(topDown)-first > len(byID)-first { // a cycle
			return topDown[:first]
		}

		topDown = append(topDown, n)
		if n.account.ParentID == "" {
			break
		}

		n = byID[n.account.ParentID]
		if n == nil { // the parent is missing
			return topDown[:first]
		}
	}

	added := topDown[first:]
	slices.Reverse(added)
	for _, n := range added {
		n.depth = 1
		if n.account.ParentID != "" {
			n.parent = byID[n.account.ParentID]
			n.depth = n.parent.depth + 1
		}
	}

	return topDown
}

// Account returns the account with the id.
func (t *Tree) Account(id string) (Account, bool) {
	n, ok := t.nodesByID[id]
	if !ok {
		return Account{}, false
	}
	return n.account, true
}

// Resolve finds an account by id, name or domain.
func (t *Tree) Resolve(ref string) (Account, bool) {
	n := cmp.Or(t.nodesByID[ref], t.nodesByName[ref], t.nodesByDomain[strings.ToLower(ref)])
	if n == nil {
		return Account{}, false
	}
	return n.account, true
}

// ByDomain finds an account by its domain, ignoring case.
func (t *Tree) ByDomain(domain string) (Account, bool) {
	n, ok := t.nodesByDomain[strings.ToLower(domain)]
	if !ok {
		return Account{}, false
	}
	return n.account, true
}

// OnlyRoot returns the root account if there is one only. ok is false where there are
// several, each of another tenant, or none.
func (t *Tree) OnlyRoot() (root Account, ok bool) {
	if t.roots != 1 {
		return Account{}, false
	}
	return t.root.account, true
}

// Contains reports whether id is root or an account below it. It returns false if either
// is unknown.
func (t *Tree) Contains(root, id string) bool {
	for n := t.nodesByID[id]; n != nil; n = n.parent {
		if n.account.ID == root {
			return true
		}
	}
	return false
}

// containsAll reports whether all accounts in ids are root or below it.
func (t *Tree) containsAll(root string, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !t.Contains(root, id) })
}

// Path returns id, its parent, and so on to its root; nil if id is unknown.
func (t *Tree) Path(id string) []string { return t.AppendPath(nil, id) }

// AppendPath appends Path to dst. With room in dst for MaxDepth ids it allocates nothing,
// unless the account is in a deeper tree of an earlier version.
func (t *Tree) AppendPath(dst []string, id string) []string {
	n := t.nodesByID[id]
	if n != nil {
		dst = slices.Grow(dst, n.depth)
	}
	for ; n != nil; n = n.parent {
		dst = append(dst, n.account.ID)
	}
	return dst
}

// Paths yields the path of every account, in no order. See Path. A path is valid until the
// next one.
func (t *Tree) Paths() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var path []string
		for id := range t.nodesByID {
			path = t.AppendPath(path[:0], id)
			if !yield(path) {
				return
			}
		}
	}
}

// Accounts lists every account, by id.
func (t *Tree) Accounts() []Account {
	accounts := make([]Account, 0, len(t.nodesByID))
	for _, n := range t.nodesByID {
		accounts = append(accounts, n.account)
	}
	slices.SortFunc(accounts, func(a, b Account) int { return strings.Compare(a.ID, b.ID) })
	return accounts
}

// NewTree builds a tree of accounts without a database, for tests of other packages. It
// omits accounts without a path to a root.
func NewTree(accounts ...Account) *Tree {
	tree, _ := buildTree(accounts)
	return tree
}
