package settings

import (
	"maps"
	"os"

	"github.com/spf13/pflag"

	"trunkline/internal/setting"
)

// Source holds the inputs of the settings: file, environment and flags.
type Source struct {
	File      string         // YAML file; "" for none
	Env       []string       // result of os.Environ
	IgnoreEnv []string       // TRUNKLINE_* variables that are not settings, not to be reported as unknown
	Flags     *pflag.FlagSet // parsed, with the flags of AddFlags; nil for none
}

// Load reads and validates the settings. unknown has the names of other TRUNKLINE_*
// variables, for a warning. The error is setting.Problems.
func Load(src Source) (s *Settings, unknown []string, err error) {
	s = Default()
	g := newTree(s)
	var problems setting.Problems

	if src.File != "" {
		problems = g.readFile(src.File)
	}

	secretFiles := make(map[string]string)
	unknown, found := g.readEnv(src.Env, src.IgnoreEnv, secretFiles)
	problems = append(problems, found...)

	if src.Flags != nil {
		problems = append(problems, g.readFlags(src.Flags)...)
		// SecretReader would read the file again, and so undo the flag.
		maps.DeleteFunc(secretFiles, func(key, _ string) bool { return src.Flags.Changed(key) })
	}
	if len(problems) > 0 {
		return nil, unknown, problems
	}

	// Values that could not be read would cause further errors here.
	if err := setting.Validate("", s); err != nil {
		return nil, unknown, err
	}
	if len(secretFiles) > 0 {
		s.secretFiles = secretFiles
	}

	return s, unknown, nil
}

func (g *group) readFile(name string) setting.Problems {
	text, err := os.ReadFile(name)
	if err != nil {
		return setting.Problems{{Where: "--config", Text: err.Error()}}
	}
	return g.readYAML(name, text)
}
