package recording

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"trunkline/cmd/internal/cli"
	"trunkline/recording"
)

// keyFlags are the sources of the key and the salt: a flag, a file, or the environment.
type keyFlags struct {
	prefix                       string // of the flags' names, "" or "new-"
	key, keyFile, salt, saltFile string
}

func (k *keyFlags) register(flags *pflag.FlagSet) {
	name := strings.TrimSuffix(k.prefix, "-")
	for _, f := range []struct {
		value *string
		name  string
		usage string
	}{
		{&k.key, "key", "key, as in the configuration (visible to every user of the machine: prefer --" + k.prefix +
			"key-file or " + k.envName("key") + ")"},
		{&k.keyFile, "key-file", "file with the key"},
		{&k.salt, "salt", "salt, as in the configuration, or " + k.envName("salt")},
		{&k.saltFile, "salt-file", "file with the salt"},
	} {
		flags.StringVar(f.value, k.prefix+f.name, "", strings.TrimSpace(name+" "+f.usage))
	}
}

// envName returns the environment variable of the key or the salt.
func (k *keyFlags) envName(what string) string {
	return cli.EnvRecording + strings.ToUpper(strings.ReplaceAll(k.prefix, "-", "_")+what)
}

func (k *keyFlags) read(p *cli.Program) (o recording.Offline, err error) {
	o.Key, err = k.readSecret(p, "key", k.key, k.keyFile)
	if err != nil {
		return o, err
	}
	o.Salt, err = k.readSecret(p, "salt", k.salt, k.saltFile)
	return o, err
}

func (k *keyFlags) readSecret(p *cli.Program, what, value, file string) (string, error) {
	switch {
	case value != "" && file != "":
		return "", cli.Usagef("give --%s%s or --%[1]s%[2]s-file, not both", k.prefix, what)
	case value != "":
		return value, nil
	case file != "":
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the %s: %w", what, err)
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	default:
		value = p.Getenv(k.envName(what))
	}

	if value == "" {
		return "", cli.Usagef("the %s%s is missing: give --%[1]s%[2]s or --%[1]s%[2]s-file, or set %[3]s", k.prefix,
			what, k.envName(what))
	}

	return value, nil
}
