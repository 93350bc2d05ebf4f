package credentials

import (
	"regexp"
	"strings"

	"trunkline/internal/setting"
)

// Settings configures the login to Kafka.
type Settings struct {
	Mechanism string         `yaml:"mechanism" doc:"plain, scram-sha-256, scram-sha-512, oauthbearer, or aws-msk-iam for Amazon MSK with IAM; empty: none"`
	Username  string         `yaml:"username" doc:"user name, of plain and scram"`
	Password  setting.Secret `yaml:"password" doc:"password, of plain and scram"`

	PasswordFile string `yaml:"password_file" file:"text" doc:"file that holds the password; read again for each connection"`
	AWSRegion    string `yaml:"aws_region" doc:"of aws-msk-iam: region of the cluster; empty: as the AWS SDK finds it (AWS_REGION, profile)"`
	OAuth        OAuth  `yaml:"oauth"`
}

// OAuth configures the tokens of oauthbearer: from a file, or from a token endpoint
// with the client credentials grant.
type OAuth struct {
	TokenFile    string         `yaml:"token_file" file:"text" doc:"file that holds a token and is kept fresh by another program, as a projected service account token of Kubernetes; read again for each login"`
	TokenURL     string         `yaml:"token_url" doc:"token endpoint of the identity provider, https"`
	ClientID     string         `yaml:"client_id" doc:"client id at token_url"`
	ClientSecret setting.Secret `yaml:"client_secret" doc:"client secret at token_url"`
	Scopes       []string       `yaml:"scopes" doc:"scopes that are asked for at token_url"`
	Parameters   []string       `yaml:"parameters" doc:"further parameters at token_url, each NAME=VALUE, as audience=kafka"`
	Extensions   []string       `yaml:"extensions" doc:"SASL extensions, each NAME=VALUE, as logicalCluster=lkc-1 of Confluent Cloud"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.OneOf("mechanism", s.Mechanism, "", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "aws-msk-iam")
	switch s.Mechanism {
	case "plain", "scram-sha-256", "scram-sha-512":
		c.Must(s.Username != "", "username", "%s needs it", c.Key("mechanism"))
		c.Must(s.Password != "" || s.PasswordFile != "", "password", "%s needs it", c.Key("mechanism"))
		c.Must(s.Password == "" || s.PasswordFile == "", "password_file", "%s is set too: unset one", c.Key("password"))
	case "":
		c.Must(s.Username == "" && s.Password == "" && s.PasswordFile == "", "mechanism",
			"%s and %s need it", c.Key("username"), c.Key("password"))
	case "oauthbearer", "aws-msk-iam":
		c.Must(s.Username == "" && s.Password == "" && s.PasswordFile == "", "mechanism",
			"%s has no %s and %s: unset them", s.Mechanism, c.Key("username"), c.Key("password"))
	}

	c.Must(s.AWSRegion == "" || s.Mechanism == "aws-msk-iam", "aws_region", "only %s aws-msk-iam has one",
		c.Key("mechanism"))
	if s.Mechanism == "oauthbearer" {
		s.OAuth.Validate(c.Group("oauth"))
	} else {
		c.Must(!s.OAuth.isSet(), "mechanism", "%s needs oauthbearer", c.Key("oauth"))
	}
}

// extensionForm is the form of a SASL extension in RFC 7628, section 3.1.
var extensionForm = regexp.MustCompile(`^[A-Za-z]+=[\x20-\x7e]+$`)

// Validate implements setting.Group. It is called if the mechanism is oauthbearer.
func (s OAuth) Validate(c *setting.Check) {
	c.Must(s.TokenFile != "" || s.TokenURL != "", "token_url", "oauthbearer needs it, or %s", c.Key("token_file"))
	c.Must(s.TokenFile == "" || s.TokenURL == "", "token_file", "%s is set too: unset one", c.Key("token_url"))
	if s.TokenURL != "" {
		_, secure := setting.SecureURL(s.TokenURL)
		c.Must(secure, "token_url", "want an https URL, got %s", setting.Quote(s.TokenURL))
		c.Must(s.ClientID != "", "client_id", "%s needs it", c.Key("token_url"))
	} else {
		c.Must(!s.hasRequestSettings(), "token_url", "%s, its secret, scopes and parameters need it",
			c.Key("client_id"))
	}

	for _, p := range s.Parameters {
		name, _, ok := strings.Cut(p, "=")
		c.Must(ok && name != "" && name != "scope", "parameters", "want NAME=VALUE, and %s for scope, got %q",
			c.Key("scopes"), p)
	}

	for _, e := range s.Extensions {
		c.Must(extensionForm.MatchString(e) && !strings.HasPrefix(e, "auth="), "extensions",
			"want NAME=VALUE with letters in NAME, got %q", e)
	}
}

// hasRequestSettings reports whether any setting of the request to TokenURL is set.
func (s OAuth) hasRequestSettings() bool {
	return s.ClientID != "" || s.ClientSecret != "" || len(s.Scopes) > 0 || len(s.Parameters) > 0
}

func (s OAuth) isSet() bool {
	return s.TokenFile != "" || s.TokenURL != "" || s.hasRequestSettings() || len(s.Extensions) > 0
}
