package ceph

import "context"

// The verbs of commands.
const (
	// verbOSDNew registers OSDs. Params maps each OSD, such as osd.3, to its uuid.
	verbOSDNew = "osd new"
	// verbAuthImport makes sure that an entity is in Ceph's auth database with its key and capabilities.
	verbAuthImport = "auth import"
	// verbAuthRm takes an entity from Ceph's auth database.
	verbAuthRm = "auth rm"
	// verbNoout and verbUnsetNoout set and take away the flag noout of the OSDs that are the command's object. It is the flag
	// of each OSD and not of the host's CRUSH bucket: the mons heed it alike, it shows in the map that is read anyway, it goes
	// with the OSD, and it cannot be mistaken for one that an administrator has set.
	verbNoout      = "osd set-group noout"
	verbUnsetNoout = "osd unset-group noout"
	// verbOSDOut and verbOSDIn have Ceph move the data off OSDs, and back.
	verbOSDOut = "osd out"
	verbOSDIn  = "osd in"
	// verbOSDPurge has Ceph forget OSDs: their numbers, their place in CRUSH, and their keys.
	verbOSDPurge = "osd purge"
	// verbCrushRm removes an empty bucket from CRUSH.
	verbCrushRm = "osd crush rm"
	// verbMonRemove takes a mon out of Ceph's own map.
	verbMonRemove = "mon remove"
	// verbMgrFail has the active manager hand over to a standby.
	verbMgrFail = "mgr fail"
)

// verb is one thing that can be asked of Ceph: how it is done, and what Ceph will say of itself when it is done. Each may be
// done again.
type verb struct {
	perform func(*conn, context.Context, request) error
	foresee func(*foresight, request)
}

// verbs are all that a plan may ask for.
var verbs = map[string]verb{
	verbOSDNew:     {(*conn).osdNew, (*foresight).osdNew},
	verbAuthImport: {(*conn).authImport, (*foresight).authImport},
	verbAuthRm:     {(*conn).authRm, (*foresight).authRm},
	verbNoout:      {(*conn).noout, (*foresight).noout},
	verbUnsetNoout: {(*conn).noout, (*foresight).noout},
	verbOSDOut:     {(*conn).inOut, (*foresight).inOut},
	verbOSDIn:      {(*conn).inOut, (*foresight).inOut},
	verbOSDPurge:   {(*conn).purge, (*foresight).purge},
	verbCrushRm:    {(*conn).removeNamed, (*foresight).crushRm},
	verbMonRemove:  {(*conn).removeNamed, (*foresight).monRemove},
	verbMgrFail:    {(*conn).mgrFail, (*foresight).mgrFail},
}
