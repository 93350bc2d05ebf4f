// Command sbom writes a CycloneDX bill of materials of a Go program: the modules
// that the linker recorded in it, and the standard library.
//
// usage: sbom PROGRAM VERSION >FILE
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION >FILE")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of materials of a program. The output is reproducible: its time is
// SOURCE_DATE_EPOCH, and it has no serial number.
func write(w io.Writer, program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the modules of %s: %w", program, err)
	}
	root := cyclonedx.Component{BOMRef: purl(info.Main.Path, version), Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: version,
		PackageURL: purl(info.Main.Path, version)}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		components = append(components, component(module))
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
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

func component(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	return library(module.Path, module.Version, module.Sum)
}

// library describes a module; sum is its line in go.sum.
func library(path, version, sum string) cyclonedx.Component {
	c := cyclonedx.Component{BOMRef: purl(path, version), Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl(path, version)}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}

func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
