package identity

import (
	"fmt"
	"strings"
)

// accountResolver resolves the parents of a directory file's accounts and sorts the accounts
// so that parents come first.
type accountResolver struct {
	accounts   []Account
	indexByRef map[string]int // by id, name and domain
}

func (r *accountResolver) add(a Account, i int, bad *fieldProblems) {
	r.accounts = append(r.accounts, a)
	for _, ref := range []struct{ field, value string }{{"id", a.ID}, {"name", a.Name}, {"domain", a.Domain}} {
		other, taken := r.find(ref.value)
		if taken && other != i {
			bad.add(fmt.Sprintf("accounts[%d].%s", i, ref.field), codeTaken, fmt.Sprintf("accounts[%d] has it", other))
			continue
		}
		r.indexByRef[ref.value] = i
	}
}

// find returns the index of the account with the id, name or domain, like Tree.Resolve.
func (r *accountResolver) find(ref string) (index int, known bool) {
	index, known = r.indexByRef[ref]
	if known {
		return index, true
	}
	index, known = r.indexByRef[strings.ToLower(ref)]
	return index, known && r.accounts[index].Domain == strings.ToLower(ref)
}

func (r *accountResolver) setParent(i int, ref string, bad *fieldProblems) {
	if ref == "" {
		return
	}
	parent, known := r.find(ref)
	if !known {
		bad.add(fmt.Sprintf("accounts[%d].parent", i), "unknown_account", "unknown account "+quote(ref))
		return
	}
	r.accounts[i].ParentID = r.accounts[parent].ID
}

// parentsFirst returns the accounts, each after its parent. It adds a problem for each
// account in a cycle, and for each that is deeper than MaxDepth and whose parent is not.
func (r *accountResolver) parentsFirst(bad *fieldProblems) []Account {
	tree, orphans := buildTree(r.accounts)
	for _, id := range orphans {
		bad.add("accounts", codeInvalid, "account "+quote(id)+" is below itself")
	}

	for _, a := range r.accounts {
		n := tree.nodesByID[a.ID]
		if n != nil && n.depth == MaxDepth+1 {
			bad.add("accounts", "too_deep",
				fmt.Sprintf("account %s is nested more than %d deep", quote(a.ID), MaxDepth))
		}
	}

	ordered := make([]Account, 0, len(r.accounts))
	added := make(map[string]struct{}, len(r.accounts))
	for _, a := range r.accounts {
		path := tree.Path(a.ID)
		for i := len(path) - 1; i >= 0; i-- {
			_, done := added[path[i]]
			if done {
				continue
			}

			added[path[i]] = struct{}{}
			account, _ := tree.Account(path[i])
			ordered = append(ordered, account)
		}
	}

	return ordered
}
