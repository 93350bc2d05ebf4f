package testservice

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// DefaultKafkaVersion is the Apache Kafka of tests without TRUNKLINE_TEST_KAFKA_VERSION.
const DefaultKafkaVersion = "4.1.0"

const jarsTimeout = 5 * time.Minute

//go:embed kafkahome/pom.xml
var kafkaPOM []byte

func kafkaVersion() string {
	return cmp.Or(os.Getenv("TRUNKLINE_TEST_KAFKA_VERSION"), DefaultKafkaVersion)
}

// kafkaHome is a folder whose libs/ holds the jars of one Apache Kafka, as in
// an unpacked distribution.
type kafkaHome struct {
	dir     string
	version string // of the found jars
}

func (h *kafkaHome) classPath() string { return filepath.Join(h.dir, "libs", "*") }

// findKafkaHome returns the folder with the jars, which it downloads with Maven if they are
// missing.
func findKafkaHome(ctx context.Context) (*kafkaHome, error) {
	_, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("%w: looking for a JDK: %w", errMissing, err)
	}

	dir := os.Getenv("TRUNKLINE_KAFKA_HOME")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("looking for the cache folder: %w", err)
		}
		dir = filepath.Join(cache, "trunkline", "kafka-"+kafkaVersion())
	}

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the Kafka jars: %w", err)
	}

	// The tests of several packages run at once: one downloads, the others wait and find the jars.
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()

	home := &kafkaHome{dir: dir}
	home.version, err = jarVersion(dir)
	if !errors.Is(err, errNoJars) {
		return home, err
	}

	if err := downloadJars(ctx, dir); err != nil {
		return nil, err
	}

	home.version, err = jarVersion(dir)
	return home, err
}

var errNoJars = errors.New("no Kafka jars")

func jarVersion(home string) (string, error) {
	const prefix, suffix = "kafka-server-common-", ".jar"
	found, err := filepath.Glob(filepath.Join(home, "libs", prefix+"*"+suffix))
	if err != nil {
		return "", fmt.Errorf("looking for the Kafka jars: %w", err)
	}

	if len(found) == 0 {
		return "", fmt.Errorf("%w in %s", errNoJars, home)
	}

	name := filepath.Base(found[0])
	return strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix), nil
}

// downloadJars creates libs/ atomically.
func downloadJars(ctx context.Context, home string) error {
	downloadDir, err := os.MkdirTemp(home, "download-")
	if err != nil {
		return fmt.Errorf("making a folder for the download: %w", err)
	}
	defer os.RemoveAll(downloadDir)

	if err := os.WriteFile(filepath.Join(downloadDir, "pom.xml"), kafkaPOM, 0o644); err != nil {
		return fmt.Errorf("writing the pom: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, jarsTimeout)
	defer cancel()

	fmt.Fprintf(os.Stderr, "testservice: getting Apache Kafka %s with Maven into %s\n", kafkaVersion(), home)
	libs := filepath.Join(downloadDir, "libs")
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+libs, "-Dkafka.version="+kafkaVersion())
	mvn.Dir = downloadDir
	output, err := mvn.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: getting the Kafka jars with Maven: %w: %s", errMissing, err, output)
	}

	if err := os.Rename(libs, filepath.Join(home, "libs")); err != nil {
		return fmt.Errorf("putting the Kafka jars in place: %w", err)
	}

	return nil
}

// lockFile waits until this process holds the lock on the file at path.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("taking the lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil // closing releases the lock
}
