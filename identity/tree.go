package identity

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Tree is an immutable snapshot of the account tree. Its lookups do not allocate.
type Tree struct {
	nodes   map[string]*node
	byName  map[string]*node
	domains map[string]*node // lower-case
	first   *node
}

type node struct {
	account Account
	path    []string // own id, parent, …, root
}

// buildTree builds the tree. It leaves out and returns accounts without a path to a root
// (their parent is missing, or they form a cycle); this package stores no such accounts.
func buildTree(accounts []Account) (tree *Tree, stray []string) {
	all := make(map[string]*node, len(accounts))
	for _, account := range accounts {
		all[account.ID] = &node{account: account}
	}
	t := &Tree{
		nodes:   make(map[string]*node, len(accounts)),
		byName:  make(map[string]*node, len(accounts)),
		domains: make(map[string]*node, len(accounts)),
	}
	for id, n := range all {
		path, ok := pathOf(all, id)
		if !ok {
			stray = append(stray, id)
			continue
		}
		n.path = path
		t.nodes[id] = n
		t.byName[n.account.Name] = n
		t.domains[n.account.Domain] = n
		if t.first == nil || n.account.before(t.first.account) {
			t.first = n
		}
	}
	slices.Sort(stray)
	return t, stray
}

func (a Account) before(b Account) bool {
	return a.CreatedAt.Before(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && a.ID < b.ID
}

func pathOf(all map[string]*node, id string) (path []string, ok bool) {
	for id != "" {
		n, known := all[id]
		if !known || len(path) == len(all) {
			return nil, false
		}
		path = append(path, id)
		id = n.account.ParentID
	}
	return slices.Clip(path), true
}

// Account returns the account with the id.
func (t *Tree) Account(id string) (Account, bool) {
	n, ok := t.nodes[id]
	if !ok {
		return Account{}, false
	}
	return n.account, true
}

// Resolve finds an account by id, name or domain.
func (t *Tree) Resolve(ref string) (Account, bool) {
	n := cmp.Or(t.nodes[ref], t.byName[ref], t.domains[strings.ToLower(ref)])
	if n == nil {
		return Account{}, false
	}
	return n.account, true
}

// ByDomain finds an account by its domain, whatever its case.
func (t *Tree) ByDomain(domain string) (Account, bool) {
	n, ok := t.domains[strings.ToLower(domain)]
	if !ok {
		return Account{}, false
	}
	return n.account, true
}

// Oldest returns the account that was created first; of several with the same time, the
// one with the lowest id.
func (t *Tree) Oldest() (Account, bool) {
	if t.first == nil {
		return Account{}, false
	}
	return t.first.account, true
}

// Contains reports whether id is root or an account below it. It is false when
// either is unknown.
func (t *Tree) Contains(root, id string) bool { return slices.Contains(t.Path(id), root) }

// Path is id, its parent, and so on to its root; nil when id is unknown. The
// slice is shared: it must not be changed.
func (t *Tree) Path(id string) []string {
	n, ok := t.nodes[id]
	if !ok {
		return nil
	}
	return n.path
}

// Paths yields the path of every account, in no order. See Path.
func (t *Tree) Paths() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, n := range t.nodes {
			if !yield(n.path) {
				return
			}
		}
	}
}

// Accounts lists every account, by id.
func (t *Tree) Accounts() []Account {
	accounts := make([]Account, 0, len(t.nodes))
	for _, n := range t.nodes {
		accounts = append(accounts, n.account)
	}
	slices.SortFunc(accounts, func(a, b Account) int { return strings.Compare(a.ID, b.ID) })
	return accounts
}
