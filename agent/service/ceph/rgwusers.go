package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Perform carries out a command about the users of the store.
func (RGW) Perform(ctx context.Context, l *service.Local, cmd service.Command) (message string, err error) {
	switch cmd.Verb {
	case rgw.VerbUserSet:
		message, err = setUser(ctx, l, cmd)
	case rgw.VerbUserRemove:
		message, err = removeUser(ctx, l, cmd)
	case rgw.VerbFindBuckets:
		message, err = findBuckets(ctx, l)
	default:
		err = fmt.Errorf("this agent does not know the command %q: upgrade Holdfast on this host", cmd.Verb)
	}
	if err != nil {
		return "", err
	}
	return message, keepWord(l, cmd.Object, cmd.Params[rgw.ParamWord])
}

// user is an entry of the store's metadata: what is not named here is passed on as it is.
type user struct {
	Key  string          `json:"key"`
	Ver  json.RawMessage `json:"ver,omitempty"`
	Data map[string]any  `json:"data"`
}

// userKey is one of a user's keys.
type userKey struct {
	User      string `json:"user"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// readUser is what the store has of a user; nil where there is none.
func readUser(ctx context.Context, l *service.Local, name string) (*user, error) {
	out, err := admin(ctx, l, nil, "metadata", "get", "user:"+name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // none is no error
	}
	if err != nil {
		return nil, err
	}
	u := &user{}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(u); err != nil || u.Data == nil {
		return nil, fmt.Errorf("while reading user %s: what radosgw-admin writes cannot be understood", name)
	}
	return u, nil
}

// foreignKey is an access key of the user that is not this one; empty where it has none. Who has other keys was made by somebody else.
func (u *user) foreignKey(own string) string {
	for _, field := range []string{"keys", "swift_keys"} {
		keys, _ := u.Data[field].([]any)
		for _, k := range keys {
			key, _ := k.(map[string]any)
			for _, name := range []string{"access_key", "user"} {
				if text, ok := key[name].(string); ok && text != "" {
					if text != own {
						return text
					}
					break
				}
			}
		}
	}
	return ""
}

// setUser brings a user to what the command says. The metadata is written as a whole, because that takes the secret key by standard input: the
// verbs for users want it among the arguments, where all processes of the host see it.
func setUser(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	name, access := cmd.Params[rgw.ParamUser], rgw.AccessKey(cmd.Params[rgw.ParamOwner])
	secret := string(cmd.Secret[rgw.SecretSecretKey])
	if secret == "" {
		return "", fmt.Errorf("the Secret of user %s has no entry %s: delete it, and it is made anew", name, rgw.SecretSecretKey)
	}
	u, err := readUser(ctx, l, name)
	if err != nil {
		return "", err
	}
	if u == nil {
		u = &user{Key: "user:" + name, Ver: json.RawMessage(`{"tag":"holdfast","ver":1}`), Data: map[string]any{
			"user_id": name, "op_mask": "read, write, delete", "type": "rgw",
		}}
	}
	if foreign := u.foreignKey(access); foreign != "" {
		return "", fmt.Errorf("the store has a user %s already, with a key that was not made here (%s): choose another name; or, to have it taken over with "+
			"its buckets, take its keys away with 'radosgw-admin key rm --uid %s --access-key %s'", name, foreign, name, foreign)
	}
	if err := u.take(cmd.Params); err != nil {
		return "", fmt.Errorf("while reading the request for user %s: %w", name, err)
	}
	u.Data["keys"] = []userKey{{User: name, AccessKey: access, SecretKey: secret}}
	return "user " + name + " is as declared", writeUser(ctx, l, u)
}

// take gives the user what a command says of it.
func (u *user) take(params map[string]string) error {
	buckets, err := strconv.Atoi(params[rgw.ParamMaxBuckets])
	if err != nil {
		return err
	}
	quota := map[string]any{"check_on_raw": false, "max_objects": -1, "max_size": -1, "max_size_kb": 0}
	for param, field := range map[string]string{rgw.ParamMaxObjects: "max_objects", rgw.ParamMaxSize: "max_size"} {
		text := params[param]
		if text == "" {
			continue
		}
		if quota[field], err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
		quota["enabled"] = true
	}
	caps := []map[string]string{}
	for _, c := range rgw.ParseCaps(params[rgw.ParamCaps]) {
		caps = append(caps, map[string]string{"type": c[0], "perm": c[1]})
	}
	u.Data["display_name"], u.Data["suspended"], u.Data["max_buckets"] = params[rgw.ParamDisplayName], 0, buckets
	u.Data["user_quota"], u.Data["caps"] = quota, caps
	return nil
}

func writeUser(ctx context.Context, l *service.Local, u *user) error {
	text, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("while writing %s", u.Key) // the cause would show what is secret
	}
	_, err = admin(ctx, l, text, "metadata", "put", u.Key)
	return err
}

// removeUser takes a user away that was made here. One that has buckets stays with them, without keys, or holds it up.
func removeUser(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	name := cmd.Params[rgw.ParamUser]
	u, err := readUser(ctx, l, name)
	if err != nil {
		return "", err
	}
	if u == nil || u.foreignKey(rgw.AccessKey(cmd.Params[rgw.ParamOwner])) != "" {
		return "the store has no user " + name + " that was made here", nil
	}
	buckets, err := bucketsOf(ctx, l, "--uid", name)
	switch {
	case err != nil:
		return "", err
	case len(buckets) == 0:
		_, err := admin(ctx, l, nil, "user", "rm", "--uid", name)
		return "user " + name + " is gone", err
	case cmd.Params[rgw.ParamKeep] == "":
		return "", fmt.Errorf("it has %s (%s): delete the buckets with its keys, or set deletionPolicy to Retain",
			words.Plural(len(buckets), "bucket"), words.Few(buckets))
	}
	u.Data["keys"] = []userKey{}
	return "user " + name + " has no keys any more, and stays with its buckets", writeUser(ctx, l, u)
}

// bucketsOf lists buckets, the first thousand at most.
func bucketsOf(ctx context.Context, l *service.Local, args ...string) (buckets []string, err error) {
	out, err := admin(ctx, l, nil, append([]string{"bucket", "list"}, args...)...)
	if err == nil {
		err = json.Unmarshal(out, &buckets)
	}
	if err != nil {
		return nil, fmt.Errorf("while looking for buckets: %w", err)
	}
	return buckets, nil
}

// findBuckets fails as long as the store has buckets.
func findBuckets(ctx context.Context, l *service.Local) (string, error) {
	buckets, err := bucketsOf(ctx, l)
	if err == nil && len(buckets) > 0 {
		err = fmt.Errorf("it has %s (%s): delete them with the keys of their owners, or declare the store again "+
			"with deletionPolicy Retain",
			words.Plural(len(buckets), "bucket"), words.Few(buckets))
	}
	return "the store has no buckets", err
}
