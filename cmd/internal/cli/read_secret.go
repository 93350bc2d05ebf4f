package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Password returns the password of a command: the first line of stdin, or else
// the variable EnvPassword.
func (p *Program) Password(command string, fromStdin bool) (string, error) {
	if fromStdin {
		return ReadPassword(p.In)
	}
	password := p.Getenv(EnvPassword)
	if password == "" {
		return "", Usagef("%s needs a password: set %s, or give --password-stdin", command, EnvPassword)
	}
	return password, nil
}

// ReadPassword reads a password from the first line of in.
func ReadPassword(in io.Reader) (string, error) { return ReadSecret(in, "password") }

// ReadSecret reads the first line of in; name is used in errors.
func ReadSecret(in io.Reader, name string) (string, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the %s: %w", name, err)
	}
	secret := strings.TrimRight(line, "\r\n")
	if secret == "" {
		return "", Usagef("there is no %s on stdin", name)
	}
	return secret, nil
}
