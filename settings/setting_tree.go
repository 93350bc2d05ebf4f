package settings

import (
	"fmt"
	"reflect"
	"strings"

	"trunkline/internal/setting"
)

// envPrefix is the prefix of all environment variables.
const envPrefix = "TRUNKLINE_"

// leaf is one setting: its key, its documentation, what the file that it names holds ("" if it
// names none), and a pointer to its value in a Settings.
type leaf struct {
	key, doc, file string
	setting.Value
}

// envName returns the leaf's environment variable.
func (l leaf) envName() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(l.key, ".", "_"))
}

// group is a struct of settings. The name of the outermost group is "".
type group struct {
	name    string
	members []member
}

// member is a named member of a group: a leaf, a group or a list of groups.
type member struct {
	name  string
	leaf  *leaf
	group *group
	list  *list
}

// list is a setting whose items are groups, such as feeds.
type list struct {
	key, doc string
	items    reflect.Value // the slice of structs
}

// envName returns the environment variable, which has the whole list as JSON.
func (l *list) envName() string { return leaf{key: l.key}.envName() }

// appendItem appends an item with its defaults and returns it as a group.
func (l *list) appendItem() *group {
	item := reflect.New(l.items.Type().Elem())
	if d, ok := item.Interface().(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	l.items.Set(reflect.Append(l.items, item.Elem()))
	return l.item(l.items.Len() - 1)
}

func (l *list) item(i int) *group {
	return newGroup(fmt.Sprintf("%s[%d].", l.key, i), l.items.Index(i))
}

// newTree returns the tree of the settings in s: groups and leaves with pointers into s, in
// the order of the structs, but with the leaves of a group before its subgroups.
func newTree(s *Settings) *group {
	return newGroup("", reflect.ValueOf(s).Elem())
}

func newGroup(prefix string, v reflect.Value) *group {
	g := &group{name: strings.TrimSuffix(prefix, ".")}
	var groups []member
	for field := range structFields(v) {
		switch {
		case field.inline:
			inner := newGroup(prefix, field.value)
			for _, m := range inner.members {
				if m.leaf == nil {
					groups = append(groups, m)
				} else {
					g.members = append(g.members, m)
				}
			}
		case field.value.Kind() == reflect.Struct:
			groups = append(groups, member{name: field.name, group: newGroup(prefix+field.name+".", field.value)})
		case field.value.Kind() == reflect.Slice && field.value.Type().Elem().Kind() == reflect.Struct &&
			!setting.ValueOf(field.value.Addr().Interface()).IsList():
			groups = append(groups, member{name: field.name, list: &list{prefix + field.name, field.doc, field.value}})
		default:
			value := setting.ValueOf(field.value.Addr().Interface())
			g.members = append(g.members,
				member{name: field.name, leaf: &leaf{prefix + field.name, field.doc, field.file, value}})
		}
	}

	g.members = append(g.members, groups...)
	return g
}

// field is a field of a struct of settings. The fields of an inline struct have their
// keys in the enclosing group.
type field struct {
	name, doc, file string
	inline          bool // its fields are members of the enclosing group
	value           reflect.Value
}

func structFields(v reflect.Value) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}

			tag := v.Type().Field(i).Tag
			name := tag.Get("yaml")
			f := field{name: name, doc: tag.Get("doc"), file: tag.Get("file"), inline: name == ",inline",
				value: v.Field(i)}
			if !yield(f) {
				return
			}
		}
	}
}

// find returns the member with the name.
func (g *group) find(name string) (member, bool) {
	for _, m := range g.members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// leaves returns the leaves of g and its subgroups, without those in the items of lists.
func (g *group) leaves() []leaf {
	var all []leaf
	for _, m := range g.members {
		switch {
		case m.leaf != nil:
			all = append(all, *m.leaf)
		case m.group != nil:
			all = append(all, m.group.leaves()...)
		}
	}

	return all
}

// lists returns the lists of groups in g and its subgroups, without those in the items
// of lists.
func (g *group) lists() []*list {
	var all []*list
	for _, m := range g.members {
		switch {
		case m.list != nil:
			all = append(all, m.list)
		case m.group != nil:
			all = append(all, m.group.lists()...)
		}
	}

	return all
}
