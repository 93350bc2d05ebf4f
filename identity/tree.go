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
	oldestNode    *node
}

type node struct {
	account Account
	path    []string // own id, parent, …, root
}

// buildTree builds the tree. It omits accounts without a path to a root, whose parent is
// missing or which form a cycle, and returns their ids as orphans. This package stores no
// such accounts.
func buildTree(accounts []Account) (tree *Tree, orphans []string) {
	byID := make(map[string]*node, len(accounts))
	for _, account := range accounts {
		byID[account.ID] = &node{account: account}
	}
	t := &Tree{
		nodesByID:     make(map[string]*node, len(accounts)),
		nodesByName:   make(map[string]*node, len(accounts)),
		nodesByDomain: make(map[string]*node, len(accounts)),
	}
	for id, n := range byID {
		path, ok := pathToRoot(byID, id)
		if !ok {
			orphans = append(orphans, id)
			continue
		}
		n.path = path
		t.nodesByID[id] = n
		t.nodesByName[n.account.Name] = n
		t.nodesByDomain[n.account.Domain] = n
		if t.oldestNode == nil || n.account.createdBefore(t.oldestNode.account) {
			t.oldestNode = n
		}
	}
	slices.Sort(orphans)
	return t, orphans
}

func (a Account) createdBefore(b Account) bool {
	return a.CreatedAt.Before(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && a.ID < b.ID
}

func pathToRoot(byID map[string]*node, id string) (path []string, ok bool) {
	for id != "" {
		n, known := byID[id]
		if !known || len(path) == len(byID) {
			return nil, false
		}
		path = append(path, id)
		id = n.account.ParentID
	}
	return slices.Clip(path), true
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

// Oldest returns the account that was created first; of several with the same time, the
// one with the lowest id.
func (t *Tree) Oldest() (Account, bool) {
	if t.oldestNode == nil {
		return Account{}, false
	}
	return t.oldestNode.account, true
}

// Contains reports whether id is root or an account below it. It returns false if either
// is unknown.
func (t *Tree) Contains(root, id string) bool { return slices.Contains(t.Path(id), root) }

// Path returns id, its parent, and so on to its root; nil if id is unknown. Callers must
// not modify the slice.
func (t *Tree) Path(id string) []string {
	n, ok := t.nodesByID[id]
	if !ok {
		return nil
	}
	return n.path
}

// Paths yields the path of every account, in no order. See Path.
func (t *Tree) Paths() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, n := range t.nodesByID {
			if !yield(n.path) {
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
