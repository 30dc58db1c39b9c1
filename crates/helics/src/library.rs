//! The C interface of HELICS 3 (<https://docs.helics.org/en/latest/references/api-reference/C_API.html>), as far as it is used. What is
//! unsafe in this workspace is here.
#![allow(unsafe_code, reason = "a library in C is loaded and called")]

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

use crate::Problem;

/// Names the library where the loader does not find it.
pub const LIBRARY_KEY: &str = "WINGBEAT_HELICS";
const LIBRARY: &str = "libhelics.so.3";
/// Of 3.0 and later: the interface that is declared here.
const MAJOR: &str = "3.";
/// `HELICS_TIME_MAXTIME`: a federation that has ended grants it, seconds.
const NEVER_S: f64 = 9.0e9;
/// `HELICS_PROPERTY_TIME_DELTA`.
const TIME_DELTA: c_int = 137;

/// `HelicsError`.
#[repr(C)]
struct RawError {
    code: i32,
    message: *const c_char,
}

type Handle = *mut c_void;
type Failing = *mut RawError;

/// The functions, each with the name that it has in the library.
struct Functions {
    /// What the one of these that tells it has told.
    version: String,
    error_initialize: unsafe extern "C" fn() -> RawError,
    create_broker: unsafe extern "C" fn(*const c_char, *const c_char, *const c_char, Failing) -> Handle,
    broker_wait: unsafe extern "C" fn(Handle, c_int, Failing) -> c_int,
    broker_disconnect: unsafe extern "C" fn(Handle, Failing),
    broker_free: unsafe extern "C" fn(Handle),
    create_info: unsafe extern "C" fn() -> Handle,
    info_core_type: unsafe extern "C" fn(Handle, *const c_char, Failing),
    info_core_init: unsafe extern "C" fn(Handle, *const c_char, Failing),
    info_time: unsafe extern "C" fn(Handle, c_int, c_double, Failing),
    info_free: unsafe extern "C" fn(Handle),
    create_federate: unsafe extern "C" fn(*const c_char, Handle, Failing) -> Handle,
    add_destination: unsafe extern "C" fn(Handle, *const c_char, Failing),
    add_source: unsafe extern "C" fn(Handle, *const c_char, Failing),
    register_endpoint: unsafe extern "C" fn(Handle, *const c_char, *const c_char, Failing) -> Handle,
    enter_executing: unsafe extern "C" fn(Handle, Failing),
    request_time: unsafe extern "C" fn(Handle, c_double, Failing) -> c_double,
    send_at: unsafe extern "C" fn(Handle, *const c_void, c_int, *const c_char, c_double, Failing),
    has_message: unsafe extern "C" fn(Handle) -> c_int,
    get_message: unsafe extern "C" fn(Handle) -> Handle,
    message_len: unsafe extern "C" fn(Handle) -> c_int,
    message_bytes: unsafe extern "C" fn(Handle) -> *const c_void,
    message_source: unsafe extern "C" fn(Handle) -> *const c_char,
    message_free: unsafe extern "C" fn(Handle),
    disconnect: unsafe extern "C" fn(Handle, Failing),
    federate_free: unsafe extern "C" fn(Handle),
}

impl Functions {
    fn of(library: &Library, path: &Path) -> Result<Self, Problem> {
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type of the field is that of the function in HELICS 3.
                let found = unsafe { library.get(concat!($name, "\0").as_bytes()) };
                *found.map_err(|_| Problem::NoFunction { path: path.to_owned(), name: $name })?
            }};
        }
        // Every version has this one; what else another version lacks says less.
        let get_version: unsafe extern "C" fn() -> *const c_char = function!("helicsGetVersion");
        // SAFETY: it takes nothing, and answers a text that stays.
        let version = unsafe { text(get_version()) };
        if !version.starts_with(MAJOR) {
            return Err(Problem::Version { path: path.to_owned(), version });
        }
        Ok(Self {
            version,
            error_initialize: function!("helicsErrorInitialize"),
            create_broker: function!("helicsCreateBroker"),
            broker_wait: function!("helicsBrokerWaitForDisconnect"),
            broker_disconnect: function!("helicsBrokerDisconnect"),
            broker_free: function!("helicsBrokerFree"),
            create_info: function!("helicsCreateFederateInfo"),
            info_core_type: function!("helicsFederateInfoSetCoreTypeFromString"),
            info_core_init: function!("helicsFederateInfoSetCoreInitString"),
            info_time: function!("helicsFederateInfoSetTimeProperty"),
            info_free: function!("helicsFederateInfoFree"),
            create_federate: function!("helicsCreateMessageFederate"),
            add_destination: function!("helicsEndpointAddDestinationTarget"),
            add_source: function!("helicsEndpointAddSourceTarget"),
            register_endpoint: function!("helicsFederateRegisterGlobalTargetedEndpoint"),
            enter_executing: function!("helicsFederateEnterExecutingMode"),
            request_time: function!("helicsFederateRequestTime"),
            send_at: function!("helicsEndpointSendBytesToAt"),
            has_message: function!("helicsEndpointHasMessage"),
            get_message: function!("helicsEndpointGetMessage"),
            message_len: function!("helicsMessageGetByteCount"),
            message_bytes: function!("helicsMessageGetBytesPointer"),
            message_source: function!("helicsMessageGetSource"),
            message_free: function!("helicsMessageFree"),
            disconnect: function!("helicsFederateDisconnect"),
            federate_free: function!("helicsFederateFree"),
        })
    }
}

/// The library. It stays in one thread, and is never unloaded: threads of its own may outlive what they serve.
pub(crate) struct Helics {
    functions: Functions,
    _in_one_thread: PhantomData<*const ()>,
}

impl Helics {
    /// Loads what `WINGBEAT_HELICS` names, else what the loader finds.
    pub(crate) fn load() -> Result<Self, Problem> {
        let path = std::env::var_os(LIBRARY_KEY).map_or_else(|| PathBuf::from(LIBRARY), PathBuf::from);
        // SAFETY: HELICS' own initialisation runs, nothing of ours.
        let library = unsafe { Library::new(&path) };
        let library =
            library.map_err(|error| Problem::NoLibrary { path: path.clone(), why: error.to_string() })?;
        let library = ManuallyDrop::new(library);
        end_without_destructors();
        Ok(Self { functions: Functions::of(&library, &path)?, _in_one_thread: PhantomData })
    }

    /// Such as `3.6.1 (2025-02-24)`.
    pub(crate) fn version(&self) -> &str {
        &self.functions.version
    }

    /// Calls with a place for an error, and reads it.
    fn call<T>(&self, what: &'static str, call: impl FnOnce(&Functions, Failing) -> T) -> Result<T, Problem> {
        // SAFETY: it takes nothing.
        let mut error = unsafe { (self.functions.error_initialize)() };
        let answer = call(&self.functions, &raw mut error);
        if error.code == 0 {
            return Ok(answer);
        }
        // SAFETY: HELICS' text of the error, which is valid until its next call.
        let why = unsafe { text(error.message) };
        Err(Problem::Failed { what, code: error.code, why })
    }

    /// Starts a broker of a core type, such as `tcp_ss`.
    pub(crate) fn broker(&self, core: &str, name: &str, init: &str) -> Result<Broker<'_>, Problem> {
        let [core, name, init] = [core, name, init].map(c_text);
        let handle = self.call("a broker", |f, error| {
            // SAFETY: three texts and a place for the error, which live until it returns.
            unsafe { (f.create_broker)(core.as_ptr(), name.as_ptr(), init.as_ptr(), error) }
        })?;
        Ok(Broker { helics: self, handle })
    }

    /// A federate with one endpoint, of the same name. It joins the broker that `init` names. Two grants differ by at least
    /// `delta_s`.
    pub(crate) fn federate(
        &self,
        core: &str,
        name: &str,
        init: &str,
        delta_s: f64,
    ) -> Result<Federate<'_>, Problem> {
        let [core, name, init, kind] = [core, name, init, ""].map(c_text);
        // SAFETY: it takes nothing.
        let info = unsafe { (self.functions.create_info)() };
        let federate = self.call("a federate", |f, error| {
            // SAFETY: the info that was made, texts and a place for the error, which live until it returns.
            unsafe {
                (f.info_core_type)(info, core.as_ptr(), error);
                (f.info_core_init)(info, init.as_ptr(), error);
                (f.info_time)(info, TIME_DELTA, delta_s, error);
                (f.create_federate)(name.as_ptr(), info, error)
            }
        });
        // SAFETY: it was made above, and is not used any more: the federate has what it said.
        unsafe { (self.functions.info_free)(info) };
        let mut federate = Federate { helics: self, handle: federate?, endpoint: ptr::null_mut() };
        federate.endpoint = self.call("an endpoint", |f, error| {
            // SAFETY: a federate that is there, and texts.
            unsafe { (f.register_endpoint)(federate.handle, name.as_ptr(), kind.as_ptr(), error) }
        })?;
        Ok(federate)
    }
}

/// HELICS' threads, which may still wait for another computer, do not survive the destructors of its static objects: the process would
/// end by a signal instead of its exit code. It has such objects once it is loaded, and makes others while it works: to be called
/// behind both.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn end_without_destructors() {
    // <https://man7.org/linux/man-pages/man3/on_exit.3.html>, <https://man7.org/linux/man-pages/man2/exit.2.html>
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    extern "C" fn end(status: c_int, _: *mut c_void) {
        // SAFETY: our own output is written by now, and the kernel frees the rest.
        unsafe { _exit(status) }
    }
    // Called before the destructors, because it is registered after them.
    // SAFETY: a function that stays, without an argument.
    let _ = unsafe { on_exit(end, ptr::null_mut()) };
}

/// The C library of other systems has no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn end_without_destructors() {}

/// A broker of this process.
pub(crate) struct Broker<'a> {
    helics: &'a Helics,
    handle: Handle,
}

impl Broker<'_> {
    /// Waits until all have left, for so long at most.
    pub(crate) fn wait(&self, most: std::time::Duration) {
        let most_ms = c_int::try_from(most.as_millis()).unwrap_or(c_int::MAX);
        let _ = self.helics.call("a broker's end", |f, error| {
            // SAFETY: a broker that is there.
            unsafe { (f.broker_wait)(self.handle, most_ms, error) }
        });
    }
}

impl Drop for Broker<'_> {
    fn drop(&mut self) {
        let _ = self.helics.call("a broker's end", |f, error| {
            // SAFETY: a broker that is there, and is not used any more.
            unsafe {
                (f.broker_disconnect)(self.handle, error);
                (f.broker_free)(self.handle);
            }
        });
    }
}

/// A federate with its endpoint.
pub(crate) struct Federate<'a> {
    helics: &'a Helics,
    handle: Handle,
    endpoint: Handle,
}

/// What arrived: from which endpoint, and its bytes.
pub(crate) type Arrived = (String, Vec<u8>);

impl Federate<'_> {
    /// It exchanges messages with this one: neither passes a time at which the other may still send.
    pub(crate) fn exchanges_with(&self, name: &str) -> Result<(), Problem> {
        let name = c_text(name);
        self.helics.call("an endpoint's target", |f, error| {
            // SAFETY: an endpoint that is there, and a text.
            unsafe {
                (f.add_destination)(self.endpoint, name.as_ptr(), error);
                (f.add_source)(self.endpoint, name.as_ptr(), error);
            }
        })
    }

    /// Waits until all federates are there.
    pub(crate) fn enter(&self) -> Result<(), Problem> {
        self.helics.call("the federation's start", |f, error| {
            // SAFETY: a federate that is there.
            unsafe { (f.enter_executing)(self.handle, error) }
        })
    }

    /// Sends to an endpoint, at this time.
    pub(crate) fn send(&self, to: &str, bytes: &[u8], at_s: f64) -> Result<(), Problem> {
        let to = c_text(to);
        let len = c_int::try_from(bytes.len()).map_err(|_| Problem::TooLong { len: bytes.len() })?;
        self.helics.call("sending", |f, error| {
            // SAFETY: an endpoint that is there, so many bytes, and a text.
            unsafe { (f.send_at)(self.endpoint, bytes.as_ptr().cast(), len, to.as_ptr(), at_s, error) }
        })
    }

    /// Waits until then, seconds, or until something arrives before it: when it is, and what arrived by then.
    pub(crate) fn wait(&self, until_s: f64) -> Result<(f64, Vec<Arrived>), Problem> {
        let at_s = self.helics.call("waiting", |f, error| {
            // SAFETY: a federate that is there.
            unsafe { (f.request_time)(self.handle, until_s, error) }
        })?;
        if at_s >= NEVER_S {
            return Err(Problem::Ended);
        }
        let (f, mut arrived) = (&self.helics.functions, Vec::new());
        // SAFETY: an endpoint that is there, and its messages, each until it is freed; HELICS states how long they are.
        unsafe {
            while (f.has_message)(self.endpoint) != 0 {
                let message = (f.get_message)(self.endpoint);
                let len = usize::try_from((f.message_len)(message)).unwrap_or(0);
                let bytes = (f.message_bytes)(message).cast::<u8>();
                let bytes = match bytes.is_null() {
                    true => Vec::new(),
                    false => std::slice::from_raw_parts(bytes, len).to_vec(),
                };
                arrived.push((text((f.message_source)(message)), bytes));
                (f.message_free)(message);
            }
        }
        Ok((at_s, arrived))
    }
}

impl Drop for Federate<'_> {
    fn drop(&mut self) {
        let _ = self.helics.call("a federate's end", |f, error| {
            // SAFETY: a federate that is there, and is not used any more.
            unsafe {
                (f.disconnect)(self.handle, error);
                (f.federate_free)(self.handle);
            }
        });
    }
}

/// # Safety
/// Nothing, or a text that ends with a zero and lives until this returns.
unsafe fn text(raw: *const c_char) -> String {
    match raw.is_null() {
        true => String::new(),
        // SAFETY: the caller's word.
        false => unsafe { CStr::from_ptr(raw) }.to_string_lossy().trim().to_owned(),
    }
}

/// Ours: none has a zero in it, and one that had would end there.
fn c_text(text: &str) -> CString {
    let until_zero = text.split('\0').next().unwrap_or_default();
    CString::new(until_zero).unwrap_or_default()
}
