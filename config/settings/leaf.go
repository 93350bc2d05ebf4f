package settings

import (
	"net/netip"
	"reflect"
	"strings"
	"time"
)

// envPrefix begins the name of every variable.
const envPrefix = "TRUNKLINE_"

// leaf is one setting: its key, its documentation, and a pointer to where its
// value lies in a Settings.
type leaf struct {
	key, doc string
	at       any // *string, *Secret, *URL, *bool, *int, *float64, *Bytes, *time.Duration, *[]string or *[]netip.Prefix
}

// env returns the leaf's environment variable.
func (l leaf) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(l.key, ".", "_"))
}

// secret reports whether the value must not be shown, and may come from a file.
func (l leaf) secret() bool {
	switch l.at.(type) {
	case *Secret, *URL:
		return true
	}
	return false
}

// list reports whether the value is a list.
func (l leaf) list() bool {
	switch l.at.(type) {
	case *[]string, *[]netip.Prefix:
		return true
	}
	return false
}

// group is a struct of settings; of the whole its name is "".
type group struct {
	name    string
	members []member
}

// member is an entry of a group under one name: a leaf or a further group.
type member struct {
	name  string
	leaf  *leaf
	group *group
}

// tree is s as groups and leaves that point into s, in the order of the struct.
func tree(s *Settings) *group {
	return groupOf("", reflect.ValueOf(s).Elem())
}

func groupOf(prefix string, v reflect.Value) *group {
	g := &group{name: strings.TrimSuffix(prefix, ".")}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		m := member{name: field.Tag.Get("yaml")}
		if field.Type.Kind() == reflect.Struct {
			m.group = groupOf(prefix+m.name+".", v.Field(i))
		} else {
			m.leaf = &leaf{prefix + m.name, field.Tag.Get("doc"), v.Field(i).Addr().Interface()}
		}
		g.members = append(g.members, m)
	}
	return g
}

// find returns the member called name.
func (g *group) find(name string) (member, bool) {
	for _, m := range g.members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// leaves returns the leaves of g and below.
func (g *group) leaves() []leaf {
	var all []leaf
	for _, m := range g.members {
		if m.leaf != nil {
			all = append(all, *m.leaf)
		} else {
			all = append(all, m.group.leaves()...)
		}
	}
	return all
}

// setText sets the leaf from one text; a list is comma-separated.
func (l leaf) setText(text string) error {
	if !l.list() {
		return l.set([]string{text})
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return l.set(items)
}

// set sets the leaf from its items: exactly one unless it is a list. After an
// error its value is not to be used.
func (l leaf) set(items []string) (err error) {
	switch at := l.at.(type) {
	case *[]string:
		*at = items
	case *[]netip.Prefix:
		*at, err = parsePrefixes(items)
	case *string:
		*at = items[0]
	case *Secret:
		*at = Secret(items[0])
	case *URL:
		*at = URL(items[0])
	case *bool:
		*at, err = parseBool(items[0])
	case *int:
		*at, err = parseInt(items[0])
	case *float64:
		*at, err = parseFloat(items[0])
	case *Bytes:
		*at, err = parseBytes(items[0])
	case *time.Duration:
		*at, err = parseDuration(items[0])
	}
	return err
}
