package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

// TestFileSettingsAreMarked holds that a setting whose name says that it is a file has the tag
// file, and that each certificate has a key in its group.
func TestFileSettingsAreMarked(t *testing.T) {
	marked := 0
	var check func(g *group)
	check = func(g *group) {
		holds := map[string]bool{}
		for _, m := range g.members {
			switch {
			case m.group != nil:
				check(m.group)
			case m.list != nil:
				check(m.list.appendItem())
			case strings.HasSuffix(m.name, "_file") || m.leaf.file != "":
				marked++
				holds[m.leaf.file] = true
				if !slices.Contains([]string{fileText, fileAuthorities, fileCertificate, fileKey}, m.leaf.file) {
					t.Errorf("%s has the tag file:%q", m.leaf.key, m.leaf.file)
				}
			}
		}

		if holds[fileCertificate] != holds[fileKey] {
			t.Errorf("%s has a certificate without a key, or a key without a certificate", g.name)
		}
	}

	check(newTree(Default()))
	if marked < 15 {
		t.Errorf("%d settings name a file", marked)
	}
}

func TestEveryFileThatIsReadIsChecked(t *testing.T) {
	s := Default()
	s.Roles = AllRoles()
	client := tlsclient.Settings{Enabled: true, CAFile: "/absent/ca", CertFile: "/absent/cert", KeyFile: "/absent/key"}
	s.DirectoryFile = "/absent/a"
	s.MasterKeys.File = "/absent/b"
	s.TLS.CertFile = "/absent/c"
	s.TLS.KeyFile = "/absent/d"
	s.Kafka.TLS, s.Redis.TLS, s.Origination.Asterisk.TLS, s.Origination.Driver = client, client, client, "asterisk"
	s.Kafka.SASL.PasswordFile, s.Kafka.SASL.OAuth.TokenFile = "/absent/e", "/absent/f"
	s.Feeds = []feed.Config{{}, {TLS: client}}
	s.SIP.Server.TLSListen, s.SIP.Calls.Trunk.Transport, s.SIP.Calls.Trunk.CAFile = ":5061", "tls", "/absent/g"

	var got []string
	for _, f := range s.Files() {
		got = append(got, f.Setting)
		err := f.Check()
		if !os.IsNotExist(err) {
			t.Errorf("%s: %v", f.Setting, err)
		}
	}

	slices.Sort(got)
	want := strings.Fields(`directory_file feeds[1].tls.ca_file feeds[1].tls.cert_file kafka.sasl.oauth.token_file
		kafka.sasl.password_file kafka.tls.ca_file kafka.tls.cert_file master_key_file origination.asterisk.tls.ca_file
		origination.asterisk.tls.cert_file redis.tls.ca_file redis.tls.cert_file sip.trunk.ca_file tls.cert_file`)
	if !slices.Equal(got, want) {
		t.Errorf("checked are %v", got)
	}

	s.Roles, s.TLS.Mode, s.SIP.Server.TLSListen = []string{RoleFanout}, "off", ""
	for _, f := range s.Files() {
		for _, unread := range []string{"tls.", "feeds[", "origination.", "sip."} {
			if strings.HasPrefix(f.Setting, unread) {
				t.Errorf("%s is checked on a node that does not read it", f.Setting)
			}
		}
	}
}

func TestContentOfFilesIsChecked(t *testing.T) {
	ca := testservice.NewCA(t)
	cert, key := ca.Pair(t, "one")
	_, otherKey := ca.Pair(t, "other")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		file File
		want string // "": usable
	}{
		{File{Path: ca.File, holds: fileAuthorities}, ""},
		{File{Path: key, holds: fileAuthorities}, "no certificate in PEM"},
		{File{Path: empty, holds: fileAuthorities}, "no certificate in PEM"},
		{File{Path: empty, holds: fileText}, ""},
		{File{Path: cert, KeyPath: key, holds: fileCertificate}, ""},
		{File{Path: cert, KeyPath: otherKey, holds: fileCertificate}, "private key does not match"},
		{File{Path: cert, KeyPath: empty, holds: fileCertificate}, "failed to find any PEM data"},
	} {
		err := c.file.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.file, err, c.want)
		}
	}
}
