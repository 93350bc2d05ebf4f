package settings

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Source holds the inputs of the settings: file, environment and flags.
type Source struct {
	File      string         // YAML file; "" for none
	Env       []string       // as os.Environ gives it
	IgnoreEnv []string       // TRUNKLINE_* variables that are no settings, but known
	Flags     *pflag.FlagSet // with the flags of AddFlags, parsed; nil for none
}

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Where string // "conf.yaml:3", "TRUNKLINE_LISTEN", "--listen"; "" when it is the value, wherever set
	Key   string // the setting; "" when it is the file
	Text  string // what is invalid and what to set instead
}

func (p Problem) String() string {
	text := p.Text
	for _, before := range []string{p.Key, p.Where} {
		if before != "" {
			text = before + ": " + text
		}
	}
	return text
}

// Problems is everything that is wrong with the settings; never empty as an
// error.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Load reads and validates the settings. unknown names the TRUNKLINE_*
// variables that mean nothing here: a warning, not an error. The error is
// Problems.
func Load(from Source) (s *Settings, unknown []string, err error) {
	s = Default()
	g := tree(s)
	var problems Problems
	if from.File != "" {
		problems = g.readFile(from.File)
	}
	unknown, found := g.readEnv(from.Env, from.IgnoreEnv)
	problems = append(problems, found...)
	if from.Flags != nil {
		problems = append(problems, g.readFlags(from.Flags)...)
	}
	if len(problems) == 0 { // else values are missing, and would be blamed too
		problems = s.Validate()
	}
	if len(problems) > 0 {
		return nil, unknown, problems
	}
	return s, unknown, nil
}

func (g *group) readFile(name string) Problems {
	text, err := os.ReadFile(name)
	if err != nil {
		return Problems{{Where: "--config", Text: err.Error()}}
	}
	return g.readYAML(name, text)
}
