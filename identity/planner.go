package identity

import (
	"fmt"
	"strings"
)

// planner puts the accounts of a directory file in order.
type planner struct {
	accounts []Account
	byRef    map[string]int // id, name and domain of each
}

func (p *planner) add(a Account, i int, bad *problems) {
	p.accounts = append(p.accounts, a)
	for _, ref := range []struct{ field, is string }{{"id", a.ID}, {"name", a.Name}, {"domain", a.Domain}} {
		if other, taken := p.find(ref.is); taken && other != i {
			bad.add(fmt.Sprintf("accounts[%d].%s", i, ref.field), codeTaken, fmt.Sprintf("accounts[%d] has it", other))
			continue
		}
		p.byRef[ref.is] = i
	}
}

// find finds an account as Tree.Resolve does.
func (p *planner) find(ref string) (index int, known bool) {
	if index, known = p.byRef[ref]; known {
		return index, true
	}
	index, known = p.byRef[strings.ToLower(ref)]
	return index, known && p.accounts[index].Domain == strings.ToLower(ref)
}

func (p *planner) parent(i int, ref string, bad *problems) {
	if ref == "" {
		return
	}
	parent, known := p.find(ref)
	if !known {
		bad.add(fmt.Sprintf("accounts[%d].parent", i), "unknown_account", "unknown account "+quote(ref))
		return
	}
	p.accounts[i].ParentID = p.accounts[parent].ID
}

// parentsFirst orders the accounts so that each comes after its parent. It reports
// accounts that form a cycle.
func (p *planner) parentsFirst(bad *problems) []Account {
	tree, stray := buildTree(p.accounts)
	for _, id := range stray {
		bad.add("accounts", codeInvalid, "account "+quote(id)+" is below itself")
	}
	ordered := make([]Account, 0, len(p.accounts))
	placed := make(map[string]struct{}, len(p.accounts))
	for _, a := range p.accounts {
		path := tree.Path(a.ID)
		for i := len(path) - 1; i >= 0; i-- {
			if _, done := placed[path[i]]; done {
				continue
			}
			placed[path[i]] = struct{}{}
			account, _ := tree.Account(path[i])
			ordered = append(ordered, account)
		}
	}
	return ordered
}
