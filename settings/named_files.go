package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

// What a file that a setting names holds: the values of the setting's tag file.
const (
	fileText        = "text"
	fileAuthorities = "authorities" // certificates, PEM
	fileCertificate = "certificate" // a certificate chain, PEM, with its key in the group's other file
	fileKey         = "key"
)

// File is a file that a setting names.
type File struct {
	Setting string // key of the setting, such as kafka.tls.ca_file
	Path    string
	KeyPath string // of the private key, if the file is a certificate with one

	holds string // one of the values of the tag file
}

// Files returns the files that the settings name and that this process reads. The file of a
// certificate and that of its key are one File.
func (s *Settings) Files() []File {
	return slices.DeleteFunc(newTree(s).namedFiles(), func(f File) bool {
		return f.Path == "" || f.holds == fileKey || !s.readsFilesOf(f.Setting)
	})
}

// namedFiles returns the files of all settings in g, also those that are not set.
func (g *group) namedFiles() (all []File) {
	keyPath := ""
	for _, m := range g.members {
		switch {
		case m.group != nil:
			all = append(all, m.group.namedFiles()...)
		case m.list != nil:
			for i := range m.list.items.Len() {
				all = append(all, m.list.item(i).namedFiles()...)
			}
		case m.leaf.file == fileKey:
			keyPath = m.leaf.Text()
			fallthrough
		case m.leaf.file != "":
			all = append(all, File{Setting: m.leaf.key, Path: m.leaf.Text(), holds: m.leaf.file})
		}
	}

	// After all members: the file of the key may come behind that of its certificate.
	for i := range all {
		if all[i].holds == fileCertificate && all[i].KeyPath == "" {
			all[i].KeyPath = keyPath
		}
	}

	return all
}

// readsFilesOf reports whether this process reads a setting that names a file: one of a driver
// that is not used, for instance, may name a file that only other nodes have.
func (s *Settings) readsFilesOf(key string) bool {
	has := func(role string) bool { return slices.Contains(s.Roles, role) }
	within := func(group string) bool { return strings.HasPrefix(key, group) }
	switch {
	case within("tls."):
		return s.TLS.Mode != "off" || s.SIP.Server.TLSListen != ""
	case within("feeds["):
		return has(RoleIngest)
	case within("origination.asterisk."):
		return has(RoleOrigination) && s.Origination.Driver == origination.DriverAsterisk
	case within("sip.trunk."):
		return s.SIP.Calls.Trunk.Transport == "tls" && s.SIP.Server.TLSListen != "" && s.SIP.Server.Listen != sip.Off &&
			(has(RoleOrigination) || has(RoleAISession))
	}

	return true
}

// IsCertificate reports whether the process presents what is in the file.
func (f File) IsCertificate() bool { return f.holds == fileCertificate }

// Check reads the file, and returns an error if it cannot be used.
func (f File) Check() error {
	if f.IsCertificate() {
		_, err := tls.LoadX509KeyPair(f.Path, f.KeyPath)
		return err
	}

	text, err := os.ReadFile(f.Path)
	defer clear(text) // a secret

	if err == nil && f.holds == fileAuthorities && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s holds no certificate in PEM", f.Path)
	}

	return err
}
