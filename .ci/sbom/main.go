// Command sbom writes a CycloneDX bill of materials of a Go program: the modules
// that the linker recorded in it and the standard library, with their licences.
//
// usage: sbom PROGRAM REPOSITORY VERSION >FILE
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"trunkline/sbom/licence"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM REPOSITORY VERSION >FILE")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of materials of a program. The output is reproducible: its time is
// SOURCE_DATE_EPOCH, and it has no serial number.
func write(w io.Writer, program, repository, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the modules of %s: %w", program, err)
	}

	root := cyclonedx.Component{BOMRef: purl(info.Main.Path, version), Type: cyclonedx.ComponentTypeApplication,
		Name: info.Main.Path, Version: version,
		PackageURL: purl(info.Main.Path, version)}
	modules, err := licence.Of(program, repository)
	if err != nil {
		return err
	}

	var components []cyclonedx.Component
	for _, module := range modules {
		components = append(components, library(module))
	}

	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}

	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &root}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err == nil {
		bom.Metadata.Timestamp = time.Unix(epoch, 0).UTC().Format(time.RFC3339)
	}

	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cyclonedx.SpecVersion1_6)
}

// library describes a module.
func library(m licence.Module) cyclonedx.Component {
	ref := purl(m.Path, m.Version)
	c := cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: ref}

	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}} // its line in go.sum
	}

	var licences cyclonedx.Licenses
	for _, id := range m.SPDX {
		licences = append(licences, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}

	c.Licenses = &licences
	return c
}

func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
