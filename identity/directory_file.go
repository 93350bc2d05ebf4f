package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"trunkline/internal/fault"
)

// directoryFile is the content of directory.yaml.
type directoryFile struct {
	Accounts []struct {
		ID     string `yaml:"id"`
		Name   string `yaml:"name"`
		Domain string `yaml:"domain"`
		Parent string `yaml:"parent"` // id, name or domain of another account in the file

		TimeZone string `yaml:"time_zone"` // IANA name; default: UTC
	} `yaml:"accounts"`
	Users []struct {
		Account    string `yaml:"account"` // id, name or domain of an account in the file
		Username   string `yaml:"username"`
		Password   string `yaml:"password"`
		Role       Role   `yaml:"role"` // default: user
		PresenceID string `yaml:"presence_id"`

		QueueIDs []string `yaml:"queue_ids"` // of a supervisor; empty: all of the account
		AgentIDs []string `yaml:"agent_ids"` // of an agent; empty: those with its extension
	} `yaml:"users"`
}

const badDirectory = "Invalid directory file"

// Patterns of the YAML library's error texts. The texts contain names of Go types and
// values of the file, which may be a misplaced password.
var (
	yamlField  = regexp.MustCompile(`^(line \d+: field .* (?:not found|already set)) in type `)
	yamlType   = regexp.MustCompile(`^(line \d+): cannot unmarshal `)
	yamlQuoted = regexp.MustCompile("`[^`]*`?|\"[^\"]*\"?|'[^']*'?")
)

// parseDirectory parses directory.yaml. It returns an error with the line of an unknown
// key.
func parseDirectory(text []byte) (*directoryFile, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	file := &directoryFile{}
	if err := decoder.Decode(file); err != nil {
		return nil, yamlError(err)
	}

	err := decoder.Decode(&directoryFile{})
	if !errors.Is(err, io.EOF) {
		return nil, fault.Invalid(badDirectory + ": it holds more than one document")
	}

	return file, nil
}

// yamlError returns fault.KindInvalid for an error of the YAML library, without values of
// the file.
func yamlError(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.Invalid(badDirectory + ": it is empty")
	}

	problems := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var typeError *yaml.TypeError
	if errors.As(err, &typeError) {
		problems = typeError.Errors
	}

	for i, problem := range problems {
		problems[i] = redactYAML(problem)
	}

	return fault.Invalid(badDirectory + ": " + strings.Join(problems, "; "))
}

// redactYAML replaces the quoted values and the Go types in an error text of the YAML
// library.
func redactYAML(problem string) string {
	match := yamlField.FindStringSubmatch(problem)
	if match != nil {
		return match[1]
	}
	match = yamlType.FindStringSubmatch(problem)
	if match != nil {
		return match[1] + ": a value of another kind is expected"
	}
	return yamlQuoted.ReplaceAllString(problem, "…")
}

// seedRows has the accounts and users that the first start stores: accounts with parents
// before children, and users whose Account is an account's id.
type seedRows struct {
	accounts []Account
	users    []NewUser
}

// buildSeed validates the whole file and returns the objects to store. Its error has all
// problems of the file.
func buildSeed(file *directoryFile, now time.Time) (*seedRows, error) {
	var bad fieldProblems
	resolver := &accountResolver{indexByRef: make(map[string]int)}
	for i, entry := range file.Accounts {
		n := NewAccount{ID: entry.ID, Name: entry.Name, Domain: entry.Domain, TimeZone: entry.TimeZone}
		n.check(fmt.Sprintf("accounts[%d].", i), &bad)
		resolver.add(buildAccount(n, now), i, &bad)
	}

	for i, entry := range file.Accounts {
		resolver.setParent(i, entry.Parent, &bad)
	}

	var users []NewUser
	for i, entry := range file.Users {
		n := NewUser{
			Account: entry.Account, Username: entry.Username, Password: entry.Password,
			PresenceID: entry.PresenceID, Role: entry.Role, Limits: Limits{entry.QueueIDs, entry.AgentIDs}.clean(),
		}
		if n.Role == "" {
			n.Role = RoleUser
		}

		n.check(fmt.Sprintf("users[%d].", i), &bad)
		account, known := resolver.find(n.Account)
		if !known {
			bad.add(fmt.Sprintf("users[%d].account", i), "unknown_account", "unknown account "+quote(n.Account))
			continue
		}

		n.Account = resolver.accounts[account].ID
		users = append(users, n)
	}

	checkDuplicateUsers(users, &bad)
	ordered := resolver.parentsFirst(&bad)
	if err := bad.asError(badDirectory); err != nil {
		return nil, err
	}

	return &seedRows{accounts: ordered, users: users}, nil
}

// checkDuplicateUsers adds a problem for each user whose name or extension another user
// of the account has.
func checkDuplicateUsers(users []NewUser, bad *fieldProblems) {
	seen := make(map[[3]string]struct{})
	for i, u := range users {
		for _, unique := range []struct{ field, value string }{
			{"username", strings.ToLower(u.Username)}, {"presence_id", u.PresenceID},
		} {
			key := [3]string{u.Account, unique.field, unique.value}
			_, taken := seen[key]
			if taken && unique.value != "" {
				bad.add(fmt.Sprintf("users[%d].%s", i, unique.field), codeTaken, "another user of the account has it")
			}
			seen[key] = struct{}{}
		}
	}
}
