package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// nodeFolder returns a folder whose node_modules has the packages of clients in Node, and
// clients/js.
func nodeFolder(t *testing.T) string {
	t.Helper()
	tool(t, "node")
	tool(t, "npm")
	return installed(t, nodePackages)
}

// pythonFolder returns a virtual environment with the packages of clients in Python, and
// clients/python.
func pythonFolder(t *testing.T) string {
	t.Helper()
	tool(t, "python3")
	return installed(t, pythonPackages)
}

var nodePackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "node")
	return dir, installWithClient(dir, "ws@8 standardwebhooks@1")
})

// typeScriptPackages returns a folder with the compiler and the programs of testdata/typescript.
var typeScriptPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "typescript")
	if err := os.CopyFS(dir, os.DirFS("testdata/typescript")); err != nil {
		return "", err
	}
	return dir, installWithClient(dir, "typescript@5.9.3 json-schema-to-typescript@15.0.4")
})

// vendorPackages returns a folder with the packages of npm of those whose protocols bots speak, and the compiler.
var vendorPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "vendors")
	return dir, install(dir, "npm install --no-save --no-audit --no-fund --prefer-offline --ignore-scripts "+
		"typescript@5.9.3 openai@6.49.0 @deepgram/sdk@5.13.0 twilio@6.2.0")
})

// installWithClient installs packages of npm and clients/js.
func installWithClient(dir, packages string) error {
	client, err := filepath.Abs("../clients/js")
	if err != nil {
		return err
	}
	return install(dir,
		"npm install --no-save --no-audit --no-fund --prefer-offline "+packages+` "$(npm pack '`+client+`')"`)
}

var pythonPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "python")
	// pip builds in the source folder, so it gets a copy.
	if err := os.CopyFS(filepath.Join(dir, "client"), os.DirFS("../clients/python")); err != nil {
		return "", err
	}
	return dir, install(dir,
		"python3 -m venv . && bin/python -m pip install -q --disable-pip-version-check websockets duckdb confluent-kafka standardwebhooks ./client")
})

// oidcProviderPackages installs the OpenID Connect provider of testdata/oidc-provider with the
// versions of its package-lock.json. npm caches its downloads.
var oidcProviderPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "oidc-provider")
	if err := os.CopyFS(dir, os.DirFS("testdata/oidc-provider")); err != nil {
		return "", err
	}
	return dir, install(dir,
		"npm ci --no-audit --no-fund --prefer-offline --ignore-scripts --fetch-retries=5 --fetch-retry-mintimeout=1000")
})

// schemathesisPackages installs schemathesis in the versions of testdata/schemathesis.txt, so
// that its requests stay the same until these change.
var schemathesisPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "schemathesis")
	requirements, err := filepath.Abs("testdata/schemathesis.txt")
	if err != nil {
		return "", err
	}
	return dir, install(dir,
		"python3 -m venv . && bin/python -m pip install -q --disable-pip-version-check -r '"+requirements+"'")
})

func install(dir, command string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// installed skips the test if no package registry is reachable.
func installed(t *testing.T, packages func() (string, error)) string {
	t.Helper()
	dir, err := packages()
	if err != nil {
		skipMissingTool(t, err.Error())
	}
	return dir
}
