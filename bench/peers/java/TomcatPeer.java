// SPDX-License-Identifier: Apache-2.0
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.util.threads.VirtualThreadExecutor;

/** TomcatPeer PORT REMOTE_PORT virtual|THREADS: the demo's routes on embedded Tomcat, as Spring Boot runs it. */
public class TomcatPeer extends HttpServlet {
    private final transient HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String remote;

    TomcatPeer(String remotePort) {
        remote = "http://127.0.0.1:" + remotePort + "/remote/";
    }

    private static void text(HttpServletResponse response, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        response.setContentType("text/plain;charset=UTF-8");
        response.setContentLength(bytes.length);
        response.getOutputStream().write(bytes);
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getRequestURI();
        try {
            if (path.equals("/currentThread")) {
                text(response, Thread.currentThread().toString());
            } else if (path.startsWith("/blocking/")) {
                HttpRequest call = HttpRequest.newBuilder(URI.create(remote + path.substring("/blocking/".length()))).build();
                text(response, client.send(call, HttpResponse.BodyHandlers.ofString()).body());
            } else if (path.startsWith("/remote/")) {
                String n = path.substring("/remote/".length());
                Thread.sleep(Duration.ofNanos((long) (Double.parseDouble(n) * 1e9)));
                text(response, "Hello, delayed by " + n + " seconds.");
            } else {
                response.sendError(404);
            }
        } catch (InterruptedException e) {
            response.sendError(503);
        } catch (NumberFormatException e) {
            response.sendError(400);
        }
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.SEVERE);
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        Connector connector = new Connector("org.apache.coyote.http11.Http11NioProtocol");
        connector.setPort(Integer.parseInt(arguments[0]));
        AbstractProtocol<?> protocol = (AbstractProtocol<?>) connector.getProtocolHandler();
        protocol.setAddress(java.net.InetAddress.getLoopbackAddress());
        protocol.setMaxConnections(20000);
        protocol.setAcceptCount(4096);
        protocol.setKeepAliveTimeout(600_000);
        connector.setProperty("maxKeepAliveRequests", "-1");
        if (arguments[2].equals("virtual")) {
            protocol.setExecutor(new VirtualThreadExecutor("tomcat-virtual-"));
        } else {
            protocol.setMaxThreads(Integer.parseInt(arguments[2]));
        }
        tomcat.getService().addConnector(connector);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "peer", new TomcatPeer(arguments[1]));
        context.addServletMappingDecoded("/*", "peer");
        tomcat.start();
        tomcat.getServer().await();
    }
}
