package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"trunkline/internal/setting"
)

// readEnv sets the settings of TRUNKLINE_* variables. An empty variable sets nothing,
// because compose files pass on unset variables as empty ones. A secret may instead come
// from the file in its variable with _FILE. It returns the other names that begin with
// TRUNKLINE_, except those in ignore. The variable of a list of groups has the whole
// list as JSON.
func (g *group) readEnv(environ, ignore []string) (unknown []string, problems setting.Problems) {
	values := make(map[string]string)
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) && value != "" {
			values[name] = value
		}
	}
	leaves := g.leaves()
	for _, l := range leaves {
		value, set := values[l.envName()]
		delete(values, l.envName())
		if set {
			if err := l.SetText(value); err != nil {
				problems = append(problems, setting.Problem{Where: l.envName(), Key: l.key, Text: err.Error()})
			}
		}
		file, fromFile := "", false
		if l.Secret() && !hasEnvName(leaves, l.envName()+"_FILE") {
			file, fromFile = values[l.envName()+"_FILE"]
			delete(values, l.envName()+"_FILE")
		}
		switch {
		case fromFile && set:
			problems = append(problems, setting.Problem{Where: l.envName(), Key: l.key, Text: "set here and by " + l.envName() + "_FILE: unset one"})
		case fromFile:
			if err := l.setFromFile(file); err != nil {
				problems = append(problems, setting.Problem{Where: l.envName() + "_FILE", Key: l.key, Text: err.Error()})
			}
		}
	}
	for _, l := range g.lists() {
		text, set := values[l.envName()]
		file, fromFile := values[l.envName()+"_FILE"]
		delete(values, l.envName())
		delete(values, l.envName()+"_FILE")
		switch {
		case set && fromFile:
			problems = append(problems, setting.Problem{Where: l.envName(), Key: l.key, Text: "set here and by " + l.envName() + "_FILE: unset one"})
		case set:
			problems = append(problems, l.readYAML(l.envName(), []byte(text))...)
		case fromFile:
			content, err := os.ReadFile(file)
			if err != nil {
				problems = append(problems, setting.Problem{Where: l.envName() + "_FILE", Key: l.key, Text: fmt.Sprintf("cannot be read: %v", err)})
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

// hasEnvName reports whether a setting has that variable: the variable of a setting with a
// name in …_file, such as master_key_file, is its own and not the file of a secret.
func hasEnvName(leaves []leaf, name string) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool { return l.envName() == name })
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
