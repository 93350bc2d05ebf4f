package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// readEnv sets what TRUNKLINE_* variables set; an empty variable sets nothing,
// as in compose files that pass on what is not there. A secret may instead
// come from the file that its variable with _FILE names. Other names that
// begin with TRUNKLINE_ are returned, unless they are in ignore.
func (g *group) readEnv(environ, ignore []string) (unknown []string, problems Problems) {
	values := make(map[string]string)
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) && value != "" {
			values[name] = value
		}
	}
	leaves := g.leaves()
	for _, l := range leaves {
		value, set := values[l.env()]
		delete(values, l.env())
		if set {
			if err := l.setText(value); err != nil {
				problems = append(problems, Problem{l.env(), l.key, err.Error()})
			}
		}
		file, fromFile := "", false
		if l.secret() && !hasEnv(leaves, l.env()+"_FILE") {
			file, fromFile = values[l.env()+"_FILE"]
			delete(values, l.env()+"_FILE")
		}
		switch {
		case fromFile && set:
			problems = append(problems, Problem{l.env(), l.key, "set here and by " + l.env() + "_FILE: unset one"})
		case fromFile:
			if err := l.setFromFile(file); err != nil {
				problems = append(problems, Problem{l.env() + "_FILE", l.key, err.Error()})
			}
		}
	}
	for name := range values {
		if !slices.Contains(ignore, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, problems
}

// hasEnv reports whether a setting has that variable for its own: where one is
// called …_file, as master_key_file, its variable means the setting.
func hasEnv(leaves []leaf, name string) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool { return l.env() == name })
}

func (l leaf) setFromFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return fmt.Errorf("%s is empty", file)
	}
	return l.setText(secret)
}
