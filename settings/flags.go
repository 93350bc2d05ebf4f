package settings

import (
	"strings"

	"github.com/spf13/pflag"

	"trunkline/internal/setting"
)

// AddFlags adds a flag for every setting to flags. Its name is the key; underscores can
// also be written as dashes. Load reads the flags.
func AddFlags(flags *pflag.FlagSet) {
	known := make(map[string]bool)
	for _, l := range newTree(Default()).leaves() {
		known[l.key] = true
		usage := l.doc
		if l.IsSecret() {
			usage += " (seen by every user of the machine: better " + l.envName() + "_FILE)"
		}

		flag := flags.VarPF(&flagValue{leaf: l, text: l.Text()}, l.key, "", usage)
		if l.Kind() == setting.Bool {
			flag.NoOptDefVal = "true"
		}
	}

	for _, l := range newTree(Default()).lists() {
		known[l.key] = true
		flags.String(l.key, "", l.doc+", as JSON (seen by every user of the machine: better "+l.envName()+"_FILE)")
	}

	normalize := flags.GetNormalizeFunc()
	flags.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		key := strings.ReplaceAll(name, "-", "_")
		if known[key] {
			return pflag.NormalizedName(key)
		}
		return normalize(f, name)
	})
}

// readFlags sets the settings of the flags that are set.
func (g *group) readFlags(flags *pflag.FlagSet) (problems setting.Problems) {
	for _, l := range g.leaves() {
		flag := flags.Lookup(l.key)
		if flag == nil || !flag.Changed {
			continue
		}
		if err := l.SetText(flag.Value.String()); err != nil {
			problems = append(problems, setting.Problem{Where: "--" + l.key, Key: l.key, Text: err.Error()})
		}
	}

	for _, l := range g.lists() {
		flag := flags.Lookup(l.key)
		if flag != nil && flag.Changed {
			problems = append(problems, l.readYAML("--"+l.key, []byte(flag.Value.String()))...)
		}
	}

	return problems
}

// flagValue implements pflag.Value. It keeps a flag's text until Load, which reads the file
// and the environment first. A list can be set by several flags.
type flagValue struct {
	leaf  leaf
	text  string // the default, until it is set
	isSet bool   // on the command line
}

func (v *flagValue) Set(text string) error {
	if err := v.leaf.SetText(text); err != nil {
		return err
	}
	if v.isSet && v.leaf.IsList() {
		text = v.text + "," + text
	}
	v.text, v.isSet = text, true
	return nil
}

func (v *flagValue) String() string { return v.text }

// Type returns the type that the help of the flag shows.
func (v *flagValue) Type() string {
	switch v.leaf.Kind() {
	case setting.Bool:
		return "bool"
	case setting.Int, setting.Float:
		return "number"
	case setting.Size:
		return "size"
	case setting.Duration:
		return "duration"
	}

	switch {
	case v.leaf.IsList():
		return "list"
	case strings.HasSuffix(v.leaf.key, "file"):
		return "file"
	}

	return "text"
}
