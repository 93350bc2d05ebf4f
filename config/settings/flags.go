package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for every setting to flags: its name is the key, and
// where the key has an underscore a dash does as well. Load reads them.
func AddFlags(flags *pflag.FlagSet) {
	known := make(map[string]bool)
	for _, l := range tree(Default()).leaves() {
		known[l.key] = true
		usage := l.doc
		if l.secret() {
			usage += " (seen by every user of the machine: better " + l.env() + "_FILE)"
		}
		flag := flags.VarPF(&flagValue{leaf: l, shown: l.text()}, l.key, "", usage)
		if _, isBool := l.at.(*bool); isBool {
			flag.NoOptDefVal = "true"
		}
	}
	before := flags.GetNormalizeFunc()
	flags.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		if key := strings.ReplaceAll(name, "-", "_"); known[key] {
			return pflag.NormalizedName(key)
		}
		return before(f, name)
	})
}

// readFlags sets what the flags set. Their texts were found readable when they
// were parsed.
func (g *group) readFlags(flags *pflag.FlagSet) (problems Problems) {
	for _, l := range g.leaves() {
		flag := flags.Lookup(l.key)
		if flag == nil || !flag.Changed {
			continue
		}
		if err := l.setText(flag.Value.String()); err != nil {
			problems = append(problems, Problem{"--" + l.key, l.key, err.Error()})
		}
	}
	return problems
}

// flagValue keeps a flag's text until Load, because the file and the
// environment come first. A list may be given over several flags.
type flagValue struct {
	leaf  leaf
	shown string
	given bool
}

func (v *flagValue) Set(text string) error {
	if err := v.leaf.setText(text); err != nil {
		return err
	}
	if v.given && v.leaf.list() {
		text = v.shown + "," + text
	}
	v.shown, v.given = text, true
	return nil
}

func (v *flagValue) String() string { return v.shown }

// Type returns the word that help shows behind the flag's name.
func (v *flagValue) Type() string {
	switch v.leaf.at.(type) {
	case *bool:
		return "bool"
	case *int:
		return "number"
	case *Bytes:
		return "size"
	}
	if v.leaf.list() {
		return "list"
	}
	if strings.HasSuffix(v.leaf.key, "file") {
		return "file"
	}
	if _, isText := v.leaf.at.(*string); isText || v.leaf.secret() {
		return "text"
	}
	return "duration"
}
