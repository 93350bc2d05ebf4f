package backend

import (
	"log/slog"
	"path/filepath"

	"trunkline/recording"
	"trunkline/settings"
)

// Recordings returns the configured store, or a directory in the data directory. close
// ends it.
func Recordings(s *settings.Settings, log *slog.Logger) (store recording.Store, close func() error, err error) {
	if s.Recordings.URL == "" {
		dir := filepath.Join(s.DataDir, "recordings")
		opened, err := recording.OpenDir(dir)
		if err != nil {
			return nil, nil, err
		}

		if s.Database.URL == "" {
			log.Info("recordings: on this machine, not replicated", "dir", dir)
		} else {
			log.Warn("recordings: on this machine, not replicated; other nodes find their rows and not their audio: set recordings.url",
				"dir", dir)
		}

		return opened, opened.Close, nil
	}

	cfg, err := recording.ParseS3URL(string(s.Recordings.URL))
	if err != nil {
		return nil, nil, err
	}

	cfg.SpoolDir, cfg.ReadURL = s.DataDir, s.SecretReader("recordings.url")
	bucket, err := recording.NewS3(cfg)
	if err != nil {
		return nil, nil, err
	}

	log.Info("recordings: S3", "url", s.Recordings.URL)
	return bucket, func() error { return nil }, nil
}
