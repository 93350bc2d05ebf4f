package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"trunkline/internal/setting"
)

// readEnv sets the settings of TRUNKLINE_* variables. It ignores an empty variable, because
// compose files pass unset variables as empty ones. The value of a secret may be in a file
// that the variable with the suffix _FILE names. The variable of a list of groups has the
// whole list as JSON. readEnv returns the other names that begin with TRUNKLINE_, except
// those in ignore. It adds the files that secrets came from to secretFiles, by key.
func (g *group) readEnv(environ, ignore []string,
	secretFiles map[string]string) (unknown []string, problems setting.Problems) {
	values := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, envPrefix) && value != "" {
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
		if l.IsSecret() && !hasEnvName(leaves, l.envName()+"_FILE") {
			file, fromFile = values[l.envName()+"_FILE"]
			delete(values, l.envName()+"_FILE")
		}

		switch {
		case fromFile && set:
			problems = append(problems,
				setting.Problem{Where: l.envName(), Key: l.key,
					Text: "set here and by " + l.envName() + "_FILE: unset one"})
		case fromFile:
			secretFiles[l.key] = file
			if err := l.setFromFile(file); err != nil {
				problems = append(problems,
					setting.Problem{Where: l.envName() + "_FILE", Key: l.key, Text: err.Error()})
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
			problems = append(problems,
				setting.Problem{Where: l.envName(), Key: l.key,
					Text: "set here and by " + l.envName() + "_FILE: unset one"})
		case set:
			problems = append(problems, l.readYAML(l.envName(), []byte(text))...)
		case fromFile:
			content, err := os.ReadFile(file)
			if err != nil {
				problems = append(problems,
					setting.Problem{Where: l.envName() + "_FILE", Key: l.key,
						Text: fmt.Sprintf("cannot be read: %v", err)})
				continue
			}

			problems = append(problems, l.readYAML(file, content)...)
		}
	}

	for former, key := range newNames {
		name := (&leaf{key: former}).envName()
		if values[name] != "" {
			problems = append(problems, setting.Problem{Where: name, Key: former, Text: "is called " + key})
			delete(values, name)
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

// hasEnvName reports whether the variable is that of a setting. The variable of a setting
// whose name ends in _file, such as master_key_file, does not name the file of a secret.
func hasEnvName(leaves []leaf, name string) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool { return l.envName() == name })
}

// setFromFile sets a secret to the content of a file, without surrounding white space.
func (l leaf) setFromFile(file string) error {
	secret, err := readSecretFile(file)
	if err != nil {
		return err
	}
	return l.SetText(secret)
}

// readSecretFile returns the content of a file without surrounding white space.
func readSecretFile(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}

	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", file)
	}

	return secret, nil
}
