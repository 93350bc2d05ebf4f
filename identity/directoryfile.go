package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"trunkline/internal/fault"
)

// directoryFile is directory.yaml.
type directoryFile struct {
	Accounts []struct {
		ID     string `yaml:"id"`
		Name   string `yaml:"name"`
		Domain string `yaml:"domain"`
		Parent string `yaml:"parent"` // id, name or domain of another in the file

		TimeZone string `yaml:"time_zone"` // IANA name; UTC unless set
	} `yaml:"accounts"`
	Users []struct {
		Account    string `yaml:"account"` // id, name or domain of one in the file
		Username   string `yaml:"username"`
		Password   string `yaml:"password"`
		Role       Role   `yaml:"role"` // user unless set
		PresenceID string `yaml:"presence_id"`
	} `yaml:"users"`
}

const badDirectory = "Invalid directory file"

// Patterns of the YAML library's error texts. These have names of Go types and quote the
// file, and a quoted value may be a misplaced password.
var (
	yamlField  = regexp.MustCompile(`^(line \d+: field .* (?:not found|already set)) in type `)
	yamlType   = regexp.MustCompile(`^(line \d+): cannot unmarshal `)
	yamlQuoted = regexp.MustCompile("`[^`]*`?|\"[^\"]*\"?|'[^']*'?")
)

// parseDirectory reads directory.yaml. Unknown keys are an error that names their line.
func parseDirectory(text []byte) (*directoryFile, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	file := &directoryFile{}
	if err := decoder.Decode(file); err != nil {
		return nil, badYAML(err)
	}
	if err := decoder.Decode(&directoryFile{}); !errors.Is(err, io.EOF) {
		return nil, fault.Invalid(badDirectory + ": it holds more than one document")
	}
	return file, nil
}

func badYAML(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.Invalid(badDirectory + ": it is empty")
	}
	problems := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var several *yaml.TypeError
	if errors.As(err, &several) {
		problems = several.Errors
	}
	for i, problem := range problems {
		problems[i] = plainYAML(problem)
	}
	return fault.Invalid(badDirectory + ": " + strings.Join(problems, "; "))
}

func plainYAML(problem string) string {
	if match := yamlField.FindStringSubmatch(problem); match != nil {
		return match[1]
	}
	if match := yamlType.FindStringSubmatch(problem); match != nil {
		return match[1] + ": a value of another kind is expected"
	}
	return yamlQuoted.ReplaceAllString(problem, "…")
}

// seed is the content that a first start stores: accounts with parents before
// children, and users whose Account is an account's id.
type seed struct {
	accounts []Account
	users    []NewUser
}

// plan checks the whole file and returns the objects to store. It returns every
// problem at once.
func (s *Service) plan(file *directoryFile) (*seed, error) {
	var bad problems
	p := &planner{byRef: make(map[string]int)}
	for i, entry := range file.Accounts {
		n := NewAccount{ID: entry.ID, Name: entry.Name, Domain: entry.Domain, TimeZone: entry.TimeZone}
		n.check(fmt.Sprintf("accounts[%d].", i), &bad)
		p.add(s.accountOf(n), i, &bad)
	}
	for i, entry := range file.Accounts {
		p.parent(i, entry.Parent, &bad)
	}
	var users []NewUser
	for i, entry := range file.Users {
		n := NewUser{
			Account: entry.Account, Username: entry.Username, Password: entry.Password,
			PresenceID: entry.PresenceID, Role: entry.Role,
		}
		if n.Role == "" {
			n.Role = RoleUser
		}
		n.check(fmt.Sprintf("users[%d].", i), &bad)
		account, known := p.find(n.Account)
		if !known {
			bad.add(fmt.Sprintf("users[%d].account", i), "unknown_account", "unknown account "+quote(n.Account))
			continue
		}
		n.Account = p.accounts[account].ID
		users = append(users, n)
	}
	checkTwins(users, &bad)
	ordered := p.parentsFirst(&bad)
	if err := bad.fault(badDirectory); err != nil {
		return nil, err
	}
	return &seed{accounts: ordered, users: users}, nil
}

// checkTwins reports users of one account with the same name or extension.
func checkTwins(users []NewUser, bad *problems) {
	seen := make(map[[3]string]struct{})
	for i, u := range users {
		for _, part := range []struct{ field, is string }{
			{"username", strings.ToLower(u.Username)}, {"presence_id", u.PresenceID},
		} {
			key := [3]string{u.Account, part.field, part.is}
			if _, twin := seen[key]; twin && part.is != "" {
				bad.add(fmt.Sprintf("users[%d].%s", i, part.field), codeTaken, "another user of the account has it")
			}
			seen[key] = struct{}{}
		}
	}
}
