package backend

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The keys of a Secret that a class names. Where the monitors are is in it, too: Holdfast keeps it
// up to date.
const (
	SecretCluster = "fsid"
	SecretMons    = "monHost"
	SecretUser    = "userID"
	SecretKey     = "userKey"
)

// Secrets is the content of such a Secret.
type Secrets map[string]string

// Check says which key is missing.
func (s Secrets) Check() error {
	for _, key := range []string{SecretCluster, SecretMons, SecretUser, SecretKey} {
		if s[key] == "" {
			return status.Errorf(codes.InvalidArgument,
				"the Secret of the StorageClass lacks the key %s; name a Secret with the keys %s, %s, %s and %s",
				key, SecretCluster, SecretMons, SecretUser, SecretKey)
		}
	}
	return nil
}
