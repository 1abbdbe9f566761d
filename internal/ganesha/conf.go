package ganesha

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// Export is one directory that NFS clients mount.
type Export struct {
	// ID is in the handles of clients' open files: it stays the same as long as the export gives the same directory.
	ID int32
	// Path is the directory in the storage, and Pseudo what clients mount.
	Path, Pseudo string
	ReadOnly     bool
	// Squash is "none", "root" or "all".
	Squash string
	// Clients are addresses and networks; none: everybody.
	Clients []string
	// FSAL are the lines that say which storage it is.
	FSAL []string
}

// Conf is the text of FileConf for a server with this address, with each export on a line. It serves NFSv4 by TCP alone:
// neither rpcbind nor D-Bus are needed. Locks are given back within the grace period after a restart. It panics if the address or a client is
// none, or a path has what would end its quotes: Ganesha has no way to write it, and the API lets none of these in.
func Conf(address string, exports []Export) string {
	must(address, isAddress(address))
	var b strings.Builder
	fmt.Fprintf(&b, `NFS_CORE_PARAM { Protocols = 4; NFS_Port = %d; Bind_addr = %s; Enable_UDP = False; Enable_NLM = False; Enable_RQUOTA = False; mount_path_pseudo = True; }
NFS_KRB5 { Active_krb5 = False; }
NFSv4 { RecoveryBackend = fs; RecoveryRoot = "${DATA}/%s"; Lease_Lifetime = 20; Grace_Period = 30; }
LOG { Default_Log_Level = EVENT; Facility { name = reading; destination = "${RUN}/%s/%s"; max_level = EVENT; enable = active; } }
EXPORT_DEFAULTS { Protocols = 4; Transports = TCP; SecType = sys; }
`, Port, address, DirRecovery, DirReadings, FirstReading)
	for _, e := range exports {
		for _, path := range []string{e.Path, e.Pseudo} {
			must(path, !strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`"\;{}`, r) }))
		}
		for _, client := range e.Clients {
			_, err := netip.ParsePrefix(client)
			must(client, err == nil || isAddress(client))
		}
		b.WriteString(e.text(address))
	}
	return b.String()
}

func isAddress(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Zone() == ""
}

// must panics where a text cannot be written. The engine tells that as an error of the cluster's plan, and nothing is written.
func must(text string, ok bool) {
	if !ok {
		panic(fmt.Sprintf("a configuration of NFS-Ganesha cannot hold %.100q", text))
	}
}

// Stamped is a configuration with a stamp in it, and the stamp, which follows from the text.
func Stamped(text string) (stamped, stamp string) {
	sum := sha256.Sum256([]byte(text))
	stamp = hex.EncodeToString(sum[:8])
	return stampLine(stamp) + text, stamp
}

// HasStamp says whether a configuration has a stamp.
func HasStamp(text, stamp string) bool { return strings.HasPrefix(text, stampLine(stamp)) }

func stampLine(stamp string) string { return "# " + stamp + "\n" }

func (e *Export) text(address string) string {
	access := "RW"
	if e.ReadOnly {
		access = "RO"
	}
	squash := map[string]string{"none": "No_Root_Squash", "root": "Root_Squash", "all": "All_Squash"}[e.Squash]
	// Its own host may look whether it is served.
	who := fmt.Sprintf("Access_Type = %s;", access)
	if len(e.Clients) > 0 {
		who = fmt.Sprintf("Access_Type = None; CLIENT { Clients = %s; Access_Type = %s; Squash = %s; } CLIENT { Clients = %s; Access_Type = MDONLY_RO; }",
			strings.Join(e.Clients, ", "), access, squash, address)
	}
	return fmt.Sprintf("EXPORT { Export_Id = %d; Path = %q; Pseudo = %q; Squash = %s; %s FSAL { %s } }\n",
		e.ID, e.Path, e.Pseudo, squash, who, strings.Join(e.FSAL, " "))
}

// Gluster is the storage of a GlusterFS volume whose pool has a node with this address.
func Gluster(address, volume, path string) []string {
	return []string{
		"Name = GLUSTER;", fmt.Sprintf("Hostname = %q;", address), fmt.Sprintf("Volume = %q;", volume),
		fmt.Sprintf("volpath = %q;", path), `glfs_log = "${LOG}/gfapi.log";`,
	}
}
