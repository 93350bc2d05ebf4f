package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// version, commit and date (of the commit) can be set at link time; empty ones come from the
// binary's build information.
var version, commit, date string

// buildInfo describes the build of this program.
type buildInfo struct{ version, commit, date, goVersion string }

func readBuildInfo() buildInfo {
	b := buildInfo{version, commit, date, "unknown"}
	info, ok := debug.ReadBuildInfo()
	if ok {
		b.goVersion = info.GoVersion
		b.fill(info)
	}
	if b.version == "" {
		b.version = "(devel)"
	}
	if b.commit == "" {
		b.commit = "unknown"
	}
	if b.date == "" {
		b.date = "unknown"
	}

	return b
}

func (b *buildInfo) fill(info *debug.BuildInfo) {
	if b.version == "" {
		b.version = info.Main.Version
	}
	if b.commit != "" {
		return
	}

	changed := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.commit = setting.Value
		case "vcs.time":
			b.date = setting.Value
		case "vcs.modified":
			changed = setting.Value == "true"
		}
	}

	if changed {
		b.commit += " (changed)"
	}
}

func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and build of this program",
		Args:  cli.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			_, err := fmt.Fprintf(p.Out, "trunkline %s\ncommit %s\ndate %s\n%s\n", b.version, b.commit, b.date,
				b.goVersion)
			return err
		},
	}
}
