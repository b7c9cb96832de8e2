// measure.swift: `measure(identifier:)` in front of mallow's markers, for allocation tests of the form that SwiftNIO's framework runs.
//
// Such a test is a file with `func run(identifier: String)`, which prepares what it needs and calls `measure` once or several times; each
// call is a region of the test, with the name `identifier`. `mallow check` compiles this file and `main.swift` with it. In a Swift package
// the C header is the module CMallow, for `swiftc` alone it is the bridging header.
//
// Licence: MIT OR Apache-2.0.

import Dispatch
#if canImport(CMallow)
import CMallow
#endif

/// Runs `work` as often as mallow asks for, each time as one run of the region `identifier`; without mallow, once.
///
/// Descriptors that a run leaves open are always counted, so `trackFDs` changes nothing. What `work` returns is kept, so
/// that the optimiser cannot leave the work out.
func measure(identifier: String, trackFDs: Bool = false, _ work: () -> Int) {
    withoutActuallyEscaping(work) { work in
        var work = work
        withUnsafeMutablePointer(to: &work) { pointer in
            mallow_measure(
                identifier,
                { context in
                    keep(context!.assumingMemoryBound(to: (() -> Int).self).pointee())
                },
                pointer)
        }
    }
}

#if compiler(>=5.5.2) && canImport(_Concurrency)
/// The same for asynchronous work. The task that each run is made of allocates, and counts.
@available(macOS 10.15, iOS 13, tvOS 13, watchOS 6, *)
func measure(identifier: String, trackFDs: Bool = false, _ work: @escaping @Sendable () async -> Int) {
    measure(identifier: identifier, trackFDs: trackFDs) { () -> Int in
        let done = DispatchSemaphore(value: 0)
        Task {
            keep(await work())
            done.signal()
        }
        done.wait()
        return 0
    }
}
#endif

/// What the last run returned: a place that other files could read, so that no run is left out for want of a reader.
var returnedLast = 0

@inline(never)
func keep(_ value: Int) {
    returnedLast = value
}
