package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// processUser is the user and group of the image's process and of its data directory.
const processUser = 65532

const dataDir = "/var/lib/trunkline"

// imageConfig has the image's settings from deploy/Dockerfile.
var imageConfig = v1.Config{
	Env:          []string{"TRUNKLINE_DATA_DIR=" + dataDir},
	User:         fmt.Sprintf("%d:%d", processUser, processUser),
	ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9464/tcp": {}},
	Volumes:      map[string]struct{}{dataDir: {}},
	Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/trunkline", "health"},
		Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 30 * time.Second, Retries: 3},
	Entrypoint: []string{"/trunkline"},
	Cmd:        []string{"serve"},
}

// writeImage writes an OCI archive with one image for each ARCH=FOLDER. The result depends on the
// folders, the version and SOURCE_DATE_EPOCH alone.
func writeImage(version, file string, folders []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}

	created := time.Unix(seconds, 0).UTC()

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, one := range folders {
		arch, folder, _ := strings.Cut(one, "=")
		image, err := buildImage(version, arch, folder, created)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}

		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": version},
		}})
	}

	dir, err := os.MkdirTemp("", "trunkline-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if _, err := layout.Write(dir, index); err != nil {
		return err
	}

	var archive bytes.Buffer
	if err := writeTar(&archive, dir, created, func(string) int { return 0 }); err != nil {
		return err
	}

	return os.WriteFile(file, archive.Bytes(), 0o644)
}

func buildImage(version, arch, folder string, created time.Time) (v1.Image, error) {
	var content bytes.Buffer
	err := writeTar(&content, folder, created, func(name string) int {
		if strings.HasPrefix("/"+name+"/", dataDir+"/") {
			return processUser
		}
		return 0
	})
	if err != nil {
		return nil, err
	}

	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}

	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}

	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}

	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", arch, v1.Time{Time: created}, imageConfig
	file.Config.Labels = map[string]string{"org.opencontainers.image.title": "trunkline",
		"org.opencontainers.image.version": version}

	return mutate.ConfigFile(image, file)
}

// writeTar writes the files of a folder, in order of their names and with one time.
func writeTar(w io.Writer, folder string, modified time.Time, ownerOf func(name string) int) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}

		info, err := entry.Info()
		if err != nil {
			return err
		}

		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}

		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}

		owner := ownerOf(name)
		*header = tar.Header{Typeflag: header.Typeflag, Name: name, Size: header.Size, Mode: header.Mode & 0o777,
			Uid: owner, Gid: owner, ModTime: modified}

		if entry.IsDir() {
			header.Name += "/"
		}
		if err := archive.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return err
	}

	return archive.Close()
}
