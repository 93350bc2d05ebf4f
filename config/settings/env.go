package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"trunkline/internal/setting"
)

// readEnv sets what TRUNKLINE_* variables set; an empty variable sets nothing,
// as in compose files that pass on what is not there. A secret may instead
// come from the file that its variable with _FILE names. Other names that
// begin with TRUNKLINE_ are returned, unless they are in ignore. The variable of a
// list of groups has the whole list as JSON.
func (g *group) readEnv(environ, ignore []string) (unknown []string, problems setting.Problems) {
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
			if err := l.SetText(value); err != nil {
				problems = append(problems, setting.Problem{Where: l.env(), Key: l.key, Text: err.Error()})
			}
		}
		file, fromFile := "", false
		if l.Secret() && !hasEnv(leaves, l.env()+"_FILE") {
			file, fromFile = values[l.env()+"_FILE"]
			delete(values, l.env()+"_FILE")
		}
		switch {
		case fromFile && set:
			problems = append(problems, setting.Problem{Where: l.env(), Key: l.key, Text: "set here and by " + l.env() + "_FILE: unset one"})
		case fromFile:
			if err := l.setFromFile(file); err != nil {
				problems = append(problems, setting.Problem{Where: l.env() + "_FILE", Key: l.key, Text: err.Error()})
			}
		}
	}
	for _, l := range g.lists() {
		text, set := values[l.env()]
		file, fromFile := values[l.env()+"_FILE"]
		delete(values, l.env())
		delete(values, l.env()+"_FILE")
		switch {
		case set && fromFile:
			problems = append(problems, setting.Problem{Where: l.env(), Key: l.key, Text: "set here and by " + l.env() + "_FILE: unset one"})
		case set:
			problems = append(problems, l.readYAML(l.env(), []byte(text))...)
		case fromFile:
			content, err := os.ReadFile(file)
			if err != nil {
				problems = append(problems, setting.Problem{Where: l.env() + "_FILE", Key: l.key, Text: fmt.Sprintf("cannot be read: %v", err)})
				continue
			}
			problems = append(problems, l.readYAML(file, content)...)
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
	return l.SetText(secret)
}
