package astrarium.junit5;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A server for the tests of a class, empty at first and gone afterwards.
 *
 * <p>Either {@code @ExtendWith(AstrariumExtension.class)} and a parameter of type {@link AstrariumServer}, or a static field with
 * {@code @RegisterExtension}, which can have arguments of {@code astrarium serve} and is asked for its {@link #server()}.
 */
public final class AstrariumExtension implements BeforeAllCallback, AfterAllCallback, ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(AstrariumExtension.class);

    private final String[] arguments;
    private AstrariumServer server;

    /** A server with the settings that it has by itself. */
    public AstrariumExtension() {
        this(new String[0]);
    }

    /**
     * A server with further settings.
     *
     * @param arguments further arguments of {@code astrarium serve}
     */
    public AstrariumExtension(String... arguments) {
        this.arguments = arguments.clone();
    }

    /** The server of the class whose tests run. */
    public AstrariumServer server() {
        if (server == null) {
            throw new IllegalStateException("the server is there only while tests run; register the extension in a static field");
        }
        return server;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        // Of nested classes, the outermost has the server.
        if (context.getStore(NAMESPACE).get(AstrariumServer.class) == null) {
            server = AstrariumServer.start(arguments);
            context.getStore(NAMESPACE).put(AstrariumServer.class, server);
            context.getStore(NAMESPACE).put("owner", context.getUniqueId());
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        ExtensionContext.Store store = context.getStore(NAMESPACE);
        if (context.getUniqueId().equals(store.get("owner", String.class))) {
            store.remove(AstrariumServer.class, AstrariumServer.class).close();
            server = null;
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == AstrariumServer.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return context.getStore(NAMESPACE).get(AstrariumServer.class, AstrariumServer.class);
    }
}
