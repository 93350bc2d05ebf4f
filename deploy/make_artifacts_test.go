package deploy_test

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestArtifacts checks that make artifacts, the first step of make image, lists every module that
// is linked into the program, and that the checksums match its files.
func TestArtifacts(t *testing.T) {
	release := filepath.Dir(program(t))
	var bom struct {
		Format   string `json:"bomFormat"`
		Metadata struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(release, "trunkline.cdx.json")), &bom); err != nil {
		t.Fatal(err)
	}

	if bom.Format != "CycloneDX" || bom.Metadata.Component.Name != "trunkline" ||
		bom.Metadata.Component.Version != testVersion {
		t.Errorf("%s of %+v", bom.Format, bom.Metadata.Component)
	}

	listed := map[string]string{}
	for _, c := range bom.Components {
		listed[c.Name] = c.Version
		if len(c.Licenses) == 0 || c.Licenses[0].License.ID == "" {
			t.Errorf("%s has no licence", c.Name)
		}
		if !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s has the package URL %q", c.Name, c.PURL)
		}
	}

	info, err := buildinfo.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if listed[module.Path] != module.Version {
			t.Errorf("%s %s is listed as %q", module.Path, module.Version, listed[module.Path])
		}
	}

	if listed["std"] != strings.TrimPrefix(info.GoVersion, "go") || len(listed) != len(info.Deps)+1 {
		t.Errorf("%d components for %d modules, std %q", len(listed), len(info.Deps), listed["std"])
	}

	sums := strings.Fields(string(readFile(t, filepath.Join(release, "SHA256SUMS"))))
	if len(sums) != 8 {
		t.Fatalf("checksums %q", sums)
	}

	for i := 0; i < len(sums); i += 2 {
		if sum := sha256.Sum256(readFile(t, filepath.Join(release, sums[i+1]))); hex.EncodeToString(sum[:]) != sums[i] {
			t.Errorf("the checksum of %s is wrong", sums[i+1])
		}
	}

	notices := string(readFile(t, filepath.Join(release, "THIRD_PARTY_NOTICES")))
	for name, version := range listed {
		if !strings.Contains(notices, "\n"+name+" "+version+": ") {
			t.Errorf("no notice of %s %s", name, version)
		}
	}

	for _, text := range []string{"Permission is hereby granted, free of charge", "Apache License",
		"Redistributions in binary form must reproduce", "Copyright 2009 The Go Authors"} {
		if !strings.Contains(notices, text) {
			t.Errorf("the notices do not have %q", text)
		}
	}

	for _, file := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
		if string(readFile(t, "../bin/image/"+file)) != string(readFile(t, filepath.Join(release, file))) {
			t.Errorf("the image has another %s", file)
		}
	}

	if string(readFile(t, "../bin/image/trunkline")) != string(readFile(t, program(t))) {
		t.Error("the image holds another program")
	}
}
